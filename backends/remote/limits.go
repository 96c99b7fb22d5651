package remote

import "time"

// Defaults of [Options].
const (
	DefaultHandshakeTimeout = 20 * time.Second
	DefaultConnectBudget    = 60 * time.Second
)
