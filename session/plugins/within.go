package plugins

// within checks what is in the value.
func (k *check) within(n *node, v any, at *place, f *faults, own *evaluated) bool {
	switch v := v.(type) {
	case []any:
		return k.array(n, v, at, f, own)
	case map[string]any:
		return k.object(n, v, at, f, own)
	}
	return true
}

func (k *check) array(n *node, list []any, at *place, f *faults, own *evaluated) bool {
	ok := k.counts(n.items, len(list), "minItems", "maxItems", "items", at, f)
	for i, v := range list {
		if !ok && f.full() {
			return false
		}
		if i < len(n.prefix) {
			ok = k.fits(n.prefix[i], v, at.element(i), f, nil) && ok
		} else if n.rest != nil {
			ok = k.fits(n.rest, v, at.element(i), f, nil) && ok
		} else {
			break
		}
	}
	own.first = max(own.first, min(len(n.prefix), len(list)))
	own.all = own.all || n.rest != nil
	if n.unique && !k.distinct(list, at, f) {
		ok = false
	}
	return k.contain(n, list, at, f, own) && ok
}

// distinct checks that no element is there twice.
func (k *check) distinct(list []any, at *place, f *faults) bool {
	seen := make(map[string]int, len(list))
	for i, v := range list {
		k.spend(size(v))
		key := string(canonical(nil, v))
		if before, is := seen[key]; is {
			return k.tell(f, at, "uniqueItems: items %d and %d are equal", before, i)
		}
		seen[key] = i
	}
	return true
}

// contain checks how many elements fit a schema.
func (k *check) contain(n *node, list []any, at *place, f *faults, own *evaluated) bool {
	if n.contains == nil {
		return true
	}
	found := 0
	for i, v := range list {
		if k.fits(n.contains, v, at.element(i), nil, nil) {
			if found++; n.containsEvaluates {
				own.index(i)
			}
		}
	}
	return k.counts(n.contained, found, "contains", "maxContains", "items of the kind that must be there", at, f)
}

func (k *check) object(n *node, object map[string]any, at *place, f *faults, own *evaluated) bool {
	ok := k.counts(n.members, len(object), "minProperties", "maxProperties", "properties", at, f)
	ok = k.required(n.required, object, at, f, "") && ok
	if n.properties == nil && n.patterned == nil && n.additional == nil && n.propertyNames == nil {
		return ok
	}
	var more []string
	for _, name := range sorted(object) {
		if !ok && f.full() {
			return false
		}
		v := object[name]
		if n.propertyNames != nil && !k.named(n.propertyNames, name, at, f) {
			ok = false
		}
		known := false
		if m := n.properties[name]; m != nil {
			known = true
			ok = k.fits(m, v, at.member(name), f, nil) && ok
		}
		for _, p := range n.patterned {
			if k.matches(p.pattern, name) {
				known = true
				ok = k.fits(p.schema, v, at.member(name), f, nil) && ok
			}
		}
		switch {
		case known || n.additional == nil:
		case n.additional.never:
			more = append(more, name)
		default:
			known = true
			ok = k.fits(n.additional, v, at.member(name), f, nil) && ok
		}
		if known && k.unevaluated {
			own.name(name)
		}
	}
	if len(more) > 0 {
		ok = k.tell(f, at, "additional properties %s not allowed%s", quoted(more), n.takes())
	}
	return ok
}

// named checks the name of a property.
func (k *check) named(n *node, name string, at *place, f *faults) bool {
	reasons := k.reasons(f)
	if k.fits(n, name, nil, reasons, nil) {
		return true
	}
	why := ""
	if reasons != nil && len(reasons.all) > 0 {
		why = ": " + reasons.all[0].Message
	}
	return k.tell(f, at, "propertyNames: '%s' is no name of a property here%s", clip(name), why)
}

// takes says what properties there are, for whoever gave another one.
func (n *node) takes() string {
	if len(n.names) == 0 {
		return ""
	}
	return ", there are " + quoted(n.names)
}

// rest checks what no keyword has looked at.
func (k *check) rest(n *node, v any, at *place, f *faults, own *evaluated) bool {
	if own.all {
		return true
	}
	ok := true
	switch v := v.(type) {
	case []any:
		if n.unevaluatedItems == nil {
			return true
		}
		for i := own.first; i < len(v) && (ok || !f.full()); i++ {
			if !own.some[i] {
				ok = k.fits(n.unevaluatedItems, v[i], at.element(i), f, nil) && ok
			}
		}
		own.all = true
	case map[string]any:
		if n.unevaluatedProperties == nil {
			return true
		}
		for _, name := range sorted(v) {
			if !ok && f.full() {
				break
			}
			if !own.names[name] {
				ok = k.fits(n.unevaluatedProperties, v[name], at.member(name), f, nil) && ok
			}
		}
		own.all = true
	}
	return ok
}
