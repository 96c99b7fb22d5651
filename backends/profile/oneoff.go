package profile

// OneOff returns the profile for an environment that is made for one use and
// removed after it: neither shared nor persistent.
func (p Profile) OneOff() Profile {
	p.Shared, p.Persistent = false, false
	if p.ContainerPolicy == PolicyPersistent {
		p.ContainerPolicy = PolicyPerSession
	}
	return p
}
