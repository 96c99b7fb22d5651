package plugins

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number of JSON, exactly: 0.digits times ten to the power of exponent.
// Neither a float nor a fraction would do: the one makes neighbours of large
// integers equal, the other writes out 1e999999999.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; "" is zero
	exponent int
	text     string // as it was written
}

const (
	// maxNumber is how long a number may be, in bytes: what is longer is no number
	// that anybody reckons with.
	maxNumber = 1024
	// maxExponent bounds a number's exponent, so that sums of them stay exact.
	maxExponent = 1 << 40
)

// parseNumber reads a number that is well-formed.
func parseNumber(n json.Number) (decimal, error) {
	text := string(n)
	if len(text) > maxNumber {
		return decimal{}, fmt.Errorf("a number has more than %d characters", maxNumber)
	}
	d := decimal{text: text}
	mantissa, negative := strings.CutPrefix(text, "-")
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		e, err := strconv.Atoi(mantissa[i+1:])
		if err != nil || e > maxExponent || e < -maxExponent {
			return decimal{}, fmt.Errorf("the exponent of the number %s is too large", clip(text))
		}
		mantissa, d.exponent = mantissa[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.exponent += len(whole)
	digits := whole + fraction
	d.digits = strings.TrimLeft(digits, "0")
	d.exponent -= len(digits) - len(d.digits)
	if d.digits = strings.TrimRight(d.digits, "0"); d.digits == "" {
		d.exponent = 0
	}
	d.negative = negative && d.digits != ""
	return d, nil
}

// integer reports whether there is nothing after the point; 1.0 and 1e2 are integers.
func (d decimal) integer() bool { return d.exponent >= len(d.digits) }

// compare is negative where d is less than e, and positive where it is more.
func (d decimal) compare(e decimal) int {
	if s := cmp.Compare(d.sign(), e.sign()); s != 0 || d.sign() == 0 {
		return s
	}
	return d.sign() * cmp.Or(cmp.Compare(d.exponent, e.exponent), strings.Compare(d.digits, e.digits))
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// multipleOf reports whether d is an integer times e, which is more than zero. As
// integers, d is D times ten to the power of n, and e is E to that of m. D ends in no
// zero, so that for n < m there is nothing to divide; else only the remainder of the
// power is made, never the power.
func (d decimal) multipleOf(e decimal) bool {
	power := (d.exponent - len(d.digits)) - (e.exponent - len(e.digits))
	if d.digits == "" {
		return true
	}
	if power < 0 {
		return false
	}
	dividend, _ := new(big.Int).SetString(d.digits, 10)
	divisor, _ := new(big.Int).SetString(e.digits, 10)
	tens := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(power)), divisor)
	return dividend.Mul(dividend, tens).Mod(dividend, divisor).Sign() == 0
}

// count is the number as a number of things: an integer that is not negative. Where
// it is more than there can be of anything it is the largest.
func (d decimal) count() (n int, ok bool) {
	if d.negative || !d.integer() {
		return 0, false
	}
	if d.exponent > 18 {
		return math.MaxInt, true
	}
	n, err := strconv.Atoi("0" + d.digits + strings.Repeat("0", d.exponent-len(d.digits)))
	return n, err == nil
}

// append writes the number so that equal ones are written alike.
func (d decimal) append(b []byte) []byte {
	if d.negative {
		b = append(b, '-')
	}
	b = append(b, '.')
	b = append(b, d.digits...)
	b = append(b, 'e')
	return strconv.AppendInt(b, int64(d.exponent), 10)
}

// decode reads one value of JSON: objects, lists, texts, booleans and nil as
// encoding/json has them, and numbers as decimals.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if d.More() || len(strings.TrimLeft(string(raw[d.InputOffset():]), " \t\r\n")) > 0 {
		return nil, fmt.Errorf("not JSON: something follows the value at byte %d", d.InputOffset())
	}
	return exact(v)
}

// exact replaces the numbers in v by decimals.
func exact(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return parseNumber(v)
	case []any:
		for i := range v {
			if v[i], err = exact(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, member := range v {
			if v[name], err = exact(member); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
