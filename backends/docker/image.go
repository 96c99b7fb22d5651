package docker

// pullMessage is one line of what a daemon says during a pull.
type pullMessage struct {
	Layer    string `json:"id"`
	Status   string `json:"status"`
	Error    string `json:"error"`
	Progress struct {
		Current int64 `json:"current"` // bytes
		Total   int64 `json:"total"`   // bytes, 0 when not known
	} `json:"progressDetail"`
}
