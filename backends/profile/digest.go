package profile

import "strings"

// digestPrefix begins a digest.
const digestPrefix = "sha256:"

// CutDigest takes the sum out of a digest, which names a module by its content:
// "sha256:" and 64 lower-case hex digits.
func CutDigest(s string) (sum string, is bool) {
	sum, is = strings.CutPrefix(s, digestPrefix)
	if !is || !IsSum(sum) {
		return "", false
	}
	return sum, true
}

// IsSum reports whether s has the form of a SHA-256: 64 lower-case hex digits.
func IsSum(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
