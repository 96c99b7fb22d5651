package guard

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTime is a clock that stands.
func testTime() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }
