package config

import (
	"encoding/json"
	"errors"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/profile"
)

// The types below are the user's file as it is written: they are what is
// decoded and what the schema is made from. Load turns them into a [Config].

type file struct {
	Schema                string        `json:"$schema,omitempty" jsonschema:"The JSON Schema of this file, for editors."`
	ExecutionEnvironments *environments `json:"execution_environments,omitempty" jsonschema:"The environments that sessions run in."`
	Execution             *execution    `json:"execution,omitempty" jsonschema:"Limits of every call, in every environment."`
	Guard                 *guard        `json:"guard,omitempty" jsonschema:"What may run at all: rules, rate, budget, confirmation."`
	Tools                 *tools        `json:"tools,omitempty" jsonschema:"Tools beside the built-in ones."`
	Artifacts             *artifacts    `json:"artifacts,omitempty" jsonschema:"What agents present to people."`
	ProjectProfiles       []string      `json:"project_profiles,omitempty" jsonschema:"The profiles that a project's .caisson.json may choose."`
}

type environments struct {
	Default   string                  `json:"default,omitempty" jsonschema:"The profile of sessions that name none. Default local."`
	Overrides ordered[string]         `json:"overrides,omitempty" jsonschema:"Other profiles for some tools: globs over group.tool to names of profiles. The most specific key wins, of equal ones the first."`
	Profiles  ordered[writtenProfile] `json:"profiles,omitempty" jsonschema:"Execution environments by name."`
}

type execution struct {
	Timeout        *duration `json:"timeout,omitempty" jsonschema:"How long one call may take. Default 5m."`
	MaxOutputBytes *int64    `json:"max_output_bytes,omitempty" jsonschema:"How much a command's result holds. Default 1048576, at most 2097152."`
	MaxRetries     *int      `json:"max_retries,omitempty" jsonschema:"How often what did nothing is tried again: opening an environment, or a call, after a failure that may pass and came within a second; what only reads also after a lost connection. Default 3."`
	RetryBackoff   *duration `json:"retry_backoff,omitempty" jsonschema:"The first wait between two tries; each next one is twice as long, and a random part of it is left out. Default 200ms."`
}

type guard struct {
	Rules          []rule    `json:"rules,omitempty" jsonschema:"The first rule that matches decides."`
	Rate           *rate     `json:"rate,omitempty" jsonschema:"How many calls a session may make in a time."`
	Budget         *budget   `json:"budget,omitempty" jsonschema:"How much a session may use in all."`
	ConfirmTimeout *duration `json:"confirm_timeout,omitempty" jsonschema:"How long to wait for a person. No answer denies."`
}

type rule struct {
	Tools  []string          `json:"tools" jsonschema:"Globs over group.tool, such as shell.*"`
	Match  map[string]string `json:"match,omitempty" jsonschema:"Globs over arguments by name; command sees every simple command of a shell line."`
	Actors []string          `json:"actors,omitempty" jsonschema:"main, subagent, side_chat; empty means all."`
	Action string            `json:"action" jsonschema:"allow, confirm or deny."`
	Reason string            `json:"reason,omitempty" jsonschema:"What the person who confirms, or the agent that is denied, is told."`
}

type rate struct {
	CallsPerMinute *int `json:"calls_per_minute,omitempty" jsonschema:"Calls in a minute."`
	Burst          *int `json:"burst,omitempty" jsonschema:"Calls at once. Default calls_per_minute."`
}

type budget struct {
	MaxCalls       *int64    `json:"max_calls,omitempty" jsonschema:"Calls."`
	MaxRuntime     *duration `json:"max_runtime,omitempty" jsonschema:"Time that calls took, added up."`
	MaxOutputBytes *int64    `json:"max_output_bytes,omitempty" jsonschema:"Bytes that calls returned, added up."`
}

type tools struct {
	Plugins []plugin `json:"plugins,omitempty" jsonschema:"WebAssembly tools."`
	Packs   []pack   `json:"packs,omitempty" jsonschema:"Executables inside environments that offer tools."`
}

type plugin struct {
	Name    string `json:"name" jsonschema:"The plugin's name."`
	WASM    string `json:"wasm" jsonschema:"The module: an absolute path or sha256: and 64 hex digits."`
	Profile string `json:"profile,omitempty" jsonschema:"The wasm profile that it runs in. Default where overrides send plugins, the session's where that is for wasm, else wasm:built-in."`
}

type pack struct {
	Name     string   `json:"name" jsonschema:"The pack's name."`
	Command  argv     `json:"command" jsonschema:"The executable inside the environment, alone or with arguments; ${source} in them stands for the source."`
	Source   string   `json:"source,omitempty" jsonschema:"A host file that is put into the environment, read-only and checked by hash. It is the program where ${source} does not stand."`
	Profiles []string `json:"profiles" jsonschema:"The profiles whose environments have it."`
}

type artifacts struct {
	Keep *duration `json:"keep,omitempty" jsonschema:"How long artifacts are kept. Default 720h."`
}

// duration is a string such as "30s" or a number of seconds.
type duration time.Duration

// UnmarshalJSON reads a duration.
func (d *duration) UnmarshalJSON(raw []byte) error {
	v, err := profile.ParseDuration(json.RawMessage(raw))
	*d = duration(v)
	return err
}

// argv is a program alone or with arguments.
type argv []string

// UnmarshalJSON reads a string or a list of strings.
func (a *argv) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = argv{one}
		return nil
	}
	if json.Unmarshal(raw, (*[]string)(a)) != nil {
		return errors.New("must be a program, or a list of a program and its arguments")
	}
	return nil
}

// writtenProfile is a profile that is still to be parsed.
type writtenProfile jsontext.Value

// UnmarshalJSON keeps the value.
func (p *writtenProfile) UnmarshalJSON(raw []byte) error {
	*p = writtenProfile(jsontext.Value(raw).Clone())
	return nil
}

// entry is one member of an [ordered] object.
type entry[T any] struct {
	key   string
	value T
}

// ordered is an object whose members keep the order of writing.
type ordered[T any] []entry[T]

// UnmarshalJSONFrom reads the members one by one.
func (o *ordered[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != '{' {
		return errors.New("must be an object")
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		e := entry[T]{key: t.String()}
		if err := jsonv2.UnmarshalDecode(d, &e.value); err != nil {
			return err
		}
		*o = append(*o, e)
	}
	_, err = d.ReadToken()
	return err
}
