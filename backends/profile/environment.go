package profile

import (
	"maps"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Environment makes the variables that commands get from the profile: what
// the allow lists find in environ (as [os.Environ] writes it), then the
// forwarded ones, then the literal ones. A forwarded variable that is missing
// is an error that names it. Values are secrets.
func (p Profile) Environment(environ []string) (map[string]string, error) {
	host := make(map[string]string, len(environ))
	for _, pair := range environ {
		// A leading = names the working directories of drives on Windows.
		if name, value, ok := strings.Cut(pair, "="); ok && name != "" {
			host[name] = value
		}
	}
	vars := map[string]string{}
	for _, name := range p.EnvAllowlist {
		if v, ok := host[name]; ok {
			vars[name] = v
		}
	}
	for _, prefix := range p.EnvAllowPrefixes {
		for name, v := range host {
			if strings.HasPrefix(name, prefix) {
				vars[name] = v
			}
		}
	}
	for _, name := range p.ForwardEnv {
		v, ok := host[name]
		if !ok {
			return nil, tool.Errorf(tool.ConfigInvalid, "profile %q forwards the variable %s, which is not set", p.Name, name).
				WithHint("Set %s before the service starts, or take it out of forward_env.", name).WithPath(name)
		}
		vars[name] = v
	}
	maps.Copy(vars, p.Env)
	return vars, nil
}
