package guard

import "slices"

// Limits of links.
const (
	// maxLinks bounds the links of a line.
	maxLinks = 256
	// maxLinkHops is how many links one path may go through: as many as Linux follows.
	maxLinkHops = 40
	// maxPlaces bounds the paths at which one path is by links.
	maxPlaces = 64
)

// links are those that one line makes, and what was seen of paths because of them.
type links struct {
	to map[string]string // by the path at which the link is
	// more says that there are some that were not noted.
	more bool
	seen map[place]sights
}

// place is a text that is looked at as a path, from a directory.
type place struct {
	dir, text string
	certain   bool
}

// sights are the paths that a text is looked at as, and whether these are all.
type sights struct {
	paths []string
	all   bool
}

func newLinks() *links { return &links{to: map[string]string{}, seen: map[place]sights{}} }

// add notes that what is at a path is what is at another one.
func (l *links) add(name, target string) {
	switch {
	case name == target || open(name):
	case len(l.to) < maxLinks:
		l.to[name] = target
	default:
		l.more = true
	}
}

// of are the other paths at which a path is, and whether these are all.
func (l *links) of(p string, e *effort) (all []string, ok bool) {
	if len(l.to) == 0 {
		return nil, true
	}
	next := []string{p}
	for range maxLinkHops {
		var more []string
		for _, p := range next {
			for i := 1; i <= len(p); i++ { // each directory on the way, and itself
				if i < len(p) && p[i] != '/' {
					continue
				}
				link, ok := l.to[p[:i]]
				if !e.compare(i) {
					return all, false
				}
				if !ok {
					continue
				}
				if !e.compare(pathWork + len(link) + len(p)) {
					return all, false
				}
				target := resolve(link, "."+p[i:])
				if target == p || slices.Contains(all, target) {
					continue
				}
				if len(all) == maxPlaces {
					return all, false
				}
				all, more = append(all, target), append(more, target)
			}
		}
		if next = more; len(next) == 0 {
			break
		}
	}
	return all, !l.more
}
