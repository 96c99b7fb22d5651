package tool

import "strings"

// maxDistance is how many edits a name may be away from what somebody wrote
// and still be worth proposing: more is another word.
const maxDistance = 3

// maxName is the longest name, in bytes, that is compared with known ones.
const maxName = 64

// Nearest returns the known name that a person most likely meant, or "".
func Nearest(name string, known []string) string {
	if len(name) > maxName {
		return ""
	}
	best, bestDistance := "", maxDistance+1
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		// At least half of the shorter word must be right.
		if d < bestDistance && 2*d <= min(len(name), len(k)) {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that lead from a to b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
