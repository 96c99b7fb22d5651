//go:build !linux

package supervise

import (
	"context"
	"fmt"
	"runtime"
)

// Init is for containers, which run Linux.
func Init(ctx context.Context, o InitOptions) error {
	return fmt.Errorf("caisson init is for Linux, not for %s", runtime.GOOS)
}
