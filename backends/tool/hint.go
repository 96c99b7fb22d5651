package tool

// Hints of what only a wider permission mode lets a call do. Whoever gives them knows what
// the environment allows, and not what its session does: a session in which no wider mode
// may be asked for says something else in their place.
const (
	// HintStandard is a hint by itself.
	HintStandard = "call it as the main agent in the mode standard"
	// HintStandardBehind stands behind what the mode read_only lets commands write.
	HintStandardBehind = "; call in the mode standard to change the workspace"
)
