package plugins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// check is one check of a value. A schema of a few lines can ask for more steps than
// any machine does: two alternatives that both refer to the next two, forty times
// over. So every step counts.
type check struct {
	left        int  // effort
	unevaluated bool // see compiler
}

// errEffort ends a check from within.
var errEffort = errors.New("too much to check")

// spend takes n steps, and ends the check, by a panic that Schema.Check knows, when
// they are not left.
func (k *check) spend(n int) {
	if k.left -= n; k.left < 0 {
		panic(errEffort)
	}
}

// place is where in the arguments a value is.
type place struct {
	above *place
	name  string // of a member
	index int    // of an element, when there is no name
	named bool
}

func (p *place) member(name string) *place { return &place{above: p, name: name, named: true} }
func (p *place) element(i int) *place      { return &place{above: p, index: i} }

// pointer is the place as a JSON pointer, long names shortened.
func (p *place) pointer() string {
	var parts []string
	for ; p != nil; p = p.above {
		part := strconv.Itoa(p.index)
		if p.named {
			part = escape(clip(p.name))
		}
		parts = append(parts, "/"+part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// faults are what is wrong with a value. Where nobody wants to know them they are
// nil, and the first one ends the check.
type faults struct{ all []Fault }

// costFault is the effort that a fault takes to be told.
const costFault = 20

// full reports whether there is no need to look further once something is wrong.
func (f *faults) full() bool { return f == nil || len(f.all) >= maxFaults }

// tell adds a fault, unless nobody wants to know. It returns false, as its callers
// do then.
func (k *check) tell(f *faults, at *place, format string, args ...any) bool {
	if !f.full() {
		k.spend(costFault)
		f.all = append(f.all, Fault{clip(at.pointer()), clip(fmt.Sprintf(format, args...))})
	}
	return false
}

// evaluated is what of an object or an array has been looked at by a schema that it
// fits. What has not is for unevaluatedProperties and unevaluatedItems.
type evaluated struct {
	all   bool
	names map[string]bool
	first int // so many elements
	some  map[int]bool
}

func (e *evaluated) name(name string) {
	if e.names == nil {
		e.names = map[string]bool{}
	}
	e.names[name] = true
}

func (e *evaluated) index(i int) {
	if e.some == nil {
		e.some = map[int]bool{}
	}
	e.some[i] = true
}

func (k *check) merge(into, from *evaluated) {
	k.spend(len(from.names) + len(from.some))
	into.all = into.all || from.all
	into.first = max(into.first, from.first)
	for name := range from.names {
		into.name(name)
	}
	for i := range from.some {
		into.index(i)
	}
}

// extent is how much of a value a schema object looks at itself.
func extent(v any) int {
	switch v := v.(type) {
	case []any:
		return 1 + len(v)
	case map[string]any:
		return 1 + len(v)
	case string:
		return 1 + len(v)/64 // characters are counted
	}
	return 1
}

// fits checks a value, and tells what is wrong with it. What of the value has been
// looked at is added to seen when it fits.
func (k *check) fits(n *node, v any, at *place, f *faults, seen *evaluated) bool {
	k.spend(n.cost * extent(v))
	if n.never {
		return k.tell(f, at, "nothing may stand here")
	}
	var own evaluated
	ok := n.types == 0 || n.types&typeOf(v) != 0
	if !ok {
		// Nothing else that would be said of a value of the wrong type is of use.
		return k.tell(f, at, "got %s, want %s", typeOf(v), n.types)
	}
	for _, part := range [...]func(*node, any, *place, *faults, *evaluated) bool{k.values, k.inPlace, k.within} {
		if ok = part(n, v, at, f, &own) && ok; !ok && f.full() {
			return false
		}
	}
	if ok && k.unevaluated {
		// Of a value that does not fit all may be unevaluated.
		ok = k.rest(n, v, at, f, &own)
		if ok && seen != nil {
			k.merge(seen, &own)
		}
	}
	return ok
}

// values checks what the value is by itself.
func (k *check) values(n *node, v any, at *place, f *faults, _ *evaluated) bool {
	ok := true
	if n.enum != nil {
		k.spend(size(v))
		if !n.enum[string(canonical(nil, v))] {
			ok = k.tell(f, at, "value must be one of %s", n.among)
		}
	}
	switch v := v.(type) {
	case decimal:
		return k.number(n, v, at, f) && ok
	case string:
		if n.length != (span{0, -1}) {
			ok = k.counts(n.length, utf8.RuneCountInString(v), "minLength", "maxLength", "characters", at, f) && ok
		}
		if n.pattern != nil && !k.matches(n.pattern, v) {
			ok = k.tell(f, at, "%s does not match the pattern %s", clip(written(clip(v))), n.pattern.text)
		}
	}
	return ok
}

func (k *check) number(n *node, v decimal, at *place, f *faults) bool {
	ok := true
	if n.minimum != nil && v.compare(*n.minimum) < 0 {
		ok = k.tell(f, at, "minimum: got %s, want %s or more", v.text, n.minimum.text)
	}
	if n.above != nil && v.compare(*n.above) <= 0 {
		ok = k.tell(f, at, "exclusiveMinimum: got %s, want more than %s", v.text, n.above.text)
	}
	if n.maximum != nil && v.compare(*n.maximum) > 0 {
		ok = k.tell(f, at, "maximum: got %s, want %s or less", v.text, n.maximum.text)
	}
	if n.below != nil && v.compare(*n.below) >= 0 {
		ok = k.tell(f, at, "exclusiveMaximum: got %s, want less than %s", v.text, n.below.text)
	}
	if n.multipleOf != nil {
		k.spend(10 + len(v.digits)*len(n.multipleOf.digits)/64)
		if !v.multipleOf(*n.multipleOf) {
			ok = k.tell(f, at, "multipleOf: got %s, want a multiple of %s", v.text, n.multipleOf.text)
		}
	}
	return ok
}

// counts checks how many there are of something.
func (k *check) counts(s span, n int, least, most, what string, at *place, f *faults) bool {
	switch {
	case n < s.least:
		return k.tell(f, at, "%s: got %d %s, want %d at least", least, n, what, s.least)
	case s.most >= 0 && n > s.most:
		return k.tell(f, at, "%s: got %d %s, want %d at most", most, n, what, s.most)
	}
	return true
}

// inPlace checks what other schemas say of the value.
func (k *check) inPlace(n *node, v any, at *place, f *faults, own *evaluated) bool {
	ok := true
	if n.ref != nil {
		ok = k.fits(n.ref, v, at, f, own)
	}
	for _, m := range n.allOf {
		if !ok && f.full() {
			return false
		}
		ok = k.fits(m, v, at, f, own) && ok
	}
	ok = k.any(n, v, at, f, own) && ok
	ok = k.one(n, v, at, f, own) && ok
	if n.not != nil && k.fits(n.not, v, at, nil, nil) {
		ok = k.tell(f, at, "not: the value is of the kind that is excluded")
	}
	if n.condition != nil {
		branch := n.otherwise
		if k.fits(n.condition, v, at, nil, own) {
			branch = n.then
		}
		if branch != nil {
			ok = k.fits(branch, v, at, f, own) && ok
		}
	}
	if object, is := v.(map[string]any); is {
		for _, d := range n.dependent {
			if _, has := object[d.name]; !has {
				continue
			}
			ok = k.required(d.required, object, at, f, " beside '"+d.name+"'") && ok
			if d.schema != nil {
				ok = k.fits(d.schema, v, at, f, own) && ok
			}
		}
	}
	return ok
}

// any checks that the value fits an alternative. All are looked at where it matters
// what they have looked at.
func (k *check) any(n *node, v any, at *place, f *faults, own *evaluated) bool {
	if len(n.anyOf) == 0 {
		return true
	}
	one := false
	reasons := k.reasons(f)
	for _, m := range n.anyOf {
		if k.fits(m, v, at, reasons, own) {
			if one = true; !k.unevaluated {
				return true
			}
		}
	}
	return one || k.none("anyOf", len(n.anyOf), at, f, reasons)
}

// one checks that the value fits one alternative and no other.
func (k *check) one(n *node, v any, at *place, f *faults, own *evaluated) bool {
	if len(n.oneOf) == 0 {
		return true
	}
	fitting := -1
	reasons := k.reasons(f)
	for i, m := range n.oneOf {
		if !k.fits(m, v, at, reasons, own) {
			continue
		}
		if fitting >= 0 {
			return k.tell(f, at, "oneOf: the value fits alternatives %d and %d of %d, and may fit only one", fitting+1, i+1, len(n.oneOf))
		}
		fitting, reasons = i, nil
	}
	return fitting >= 0 || k.none("oneOf", len(n.oneOf), at, f, reasons)
}

// reasons are why alternatives do not fit, for whoever wants to know faults.
func (k *check) reasons(f *faults) *faults {
	if f.full() {
		return nil
	}
	return new(faults)
}

// none tells that no alternative fits. Each fails for a reason of its own, of which
// one at most matters; that none fits is what to say, and the reasons after it.
func (k *check) none(keyword string, n int, at *place, f, reasons *faults) bool {
	k.tell(f, at, "%s: fits none of %d alternatives", keyword, n)
	if !f.full() && reasons != nil {
		f.all = append(f.all, reasons.all[:min(len(reasons.all), maxFaults-len(f.all))]...)
	}
	return false
}

// required checks that members are there.
func (k *check) required(names []string, object map[string]any, at *place, f *faults, beside string) bool {
	var missing []string
	for _, name := range names {
		if _, has := object[name]; !has {
			missing = append(missing, name)
		}
	}
	switch len(missing) {
	case 0:
		return true
	case 1:
		return k.tell(f, at, "missing property %s%s", quoted(missing), beside)
	}
	return k.tell(f, at, "missing properties %s%s", quoted(missing), beside)
}

// quoted are names for people, and no more of them than people read.
func quoted(names []string) string {
	more := ""
	if len(names) > maxFaults {
		names, more = names[:maxFaults], " and others"
	}
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("'" + clip(name) + "'")
	}
	return b.String() + more
}

// sorted are the names of the members, so that the same arguments always have the
// same faults.
func sorted(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }
