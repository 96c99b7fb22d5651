package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration as the configuration writes it: a string such
// as "30s" or "2m", or a number of seconds. It is never negative.
func ParseDuration(raw json.RawMessage) (time.Duration, error) {
	const form = `must be a duration such as "30s" or a number of seconds`
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return 0, errors.New(form)
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("%s, not %q", form, s)
		}
		if d < 0 {
			return 0, errors.New("must not be negative")
		}
		return d, nil
	}
	var seconds float64
	if string(raw) == "null" || json.Unmarshal(raw, &seconds) != nil {
		return 0, errors.New(form)
	}
	if seconds < 0 {
		return 0, errors.New("must not be negative")
	}
	if seconds >= math.MaxInt64/float64(time.Second) {
		return 0, errors.New("is too long")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// ParseSize reads a size as the configuration writes it: digits and a unit, b,
// k, m, g or t, each 1024 times the one before; a b, i or ib may follow the
// letter, and no unit means bytes. The result is in bytes and never negative.
func ParseSize(s string) (int64, error) {
	digits := strings.TrimRight(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(strings.ToLower(s)[len(digits):])
	shift := map[string]int{
		"": 0, "b": 0,
		"k": 10, "kb": 10, "ki": 10, "kib": 10,
		"m": 20, "mb": 20, "mi": 20, "mib": 20,
		"g": 30, "gb": 30, "gi": 30, "gib": 30,
		"t": 40, "tb": 40, "ti": 40, "tib": 40,
	}
	by, known := shift[unit]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !known {
		return 0, fmt.Errorf(`must be a size such as "512m" or "2g", not %q`, s)
	}
	if n > math.MaxInt64>>by {
		return 0, fmt.Errorf("the size %q is too large", s)
	}
	return int64(n << by), nil
}

// FormatSize writes bytes in the largest unit that divides them.
func FormatSize(n int64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
