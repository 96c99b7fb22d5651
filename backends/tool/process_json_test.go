package tool_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/caisson-dev/caisson/backends/tool"
)

// fill sets every member to something that is not its zero, whichever there are.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString("t\"<&>\u2028\n\\ é" + string(rune('a'+*n)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(-*n))
	case reflect.Uint16:
		v.SetUint(uint64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, *n*1000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Kind())
	}
}

func TestProcessAppendJSON(t *testing.T) {
	var full tool.ProcessEvent
	n := 0
	fill(reflect.ValueOf(&full).Elem(), &n)
	invalid := tool.ProcessEvent{Process: tool.Process{Command: "a\xffb"}}
	for name, e := range map[string]tool.ProcessEvent{"empty": {}, "full": full, "invalid": invalid} {
		t.Run(name, func(t *testing.T) {
			want, err := v2.Marshal(e, jsonv1.OmitEmptyWithLegacySemantics(true), jsontext.AllowInvalidUTF8(true))
			if err != nil {
				t.Fatal(err)
			}
			if got := e.AppendJSON(nil); string(got) != string(want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			var back tool.ProcessEvent
			if err := json.Unmarshal(e.AppendJSON(nil), &back); err != nil {
				t.Fatal(err)
			}
			if name != "invalid" && !reflect.DeepEqual(back, e) {
				t.Errorf("%+v became %+v", e, back)
			}
		})
	}
}
