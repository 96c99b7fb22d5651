package supervise

import "os"

// stopSignals are none there.
func stopSignals() []os.Signal { return nil }
