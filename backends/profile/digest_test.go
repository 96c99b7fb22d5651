package profile

import (
	"strings"
	"testing"
)

func TestCutDigest(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for s, want := range map[string]string{
		"sha256:" + sum:                       sum,
		sum:                                   "",
		"sha256:" + sum + "0":                 "",
		"sha256:" + sum[1:]:                   "",
		"sha256:" + strings.ToUpper(sum):      "",
		"sha256:" + sum[:31] + "/" + sum[32:]: "",
		"sha512:" + sum:                       "",
		"sha256:":                             "",
		"":                                    "",
	} {
		if got, is := CutDigest(s); got != want || is != (want != "") {
			t.Errorf("%q: %q, %t", s, got, is)
		}
	}
}
