package tools

// DefaultOutputBytes bounds stdout and stderr of a command together when
// nobody says otherwise: more than a model can use, less than hurts.
const DefaultOutputBytes = 256 << 10
