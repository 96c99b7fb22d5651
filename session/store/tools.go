package store

// Plugin is a WebAssembly module whose tools a session has, from when it was
// opened on.
type Plugin struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Tools are what it offers, so that they hide what they hid before even when the
	// module is gone.
	Tools []PluginTool `json:"tools"`
}

// PluginTool is one tool of a plugin.
type PluginTool struct {
	Name string `json:"name"`
	// Profile is that of the session's place where it runs.
	Profile string `json:"profile"`
}

// Pack is an executable inside a place that offers tools.
type Pack struct {
	Name    string   `json:"name"`
	Command []string `json:"command"`
	// SHA256 is that of its source; "" for one that is in the environment already.
	SHA256 string `json:"sha256,omitempty"`
}
