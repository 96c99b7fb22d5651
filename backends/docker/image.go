package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// What a profile's pull says.
const (
	pullAlways = "always"
	pullNever  = "never"
)

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

// parsePlatform reads os/arch[/variant]; "" is the zero platform.
func parsePlatform(s string) platform {
	if s == "" {
		return platform{}
	}
	parts := append(strings.SplitN(s, "/", 3), "", "")
	return platform{OS: parts[0], Arch: parts[1], Variant: parts[2]}
}

// ensureImage finds the profile's image on the daemon, pulls it as the profile
// allows, and checks that the daemon can run it.
func ensureImage(ctx context.Context, e *engine, d daemonInfo, p profile.Profile, report backends.Progress) (imageInfo, error) {
	want := parsePlatform(p.Platform)
	if p.Pull == pullAlways {
		if err := pull(ctx, e, p, report); err != nil {
			return imageInfo{}, err
		}
	}
	found, err := e.image(ctx, p.Image, want)
	missing := errors.Is(err, errNotFound)
	if err != nil && !missing {
		return imageInfo{}, err
	}
	if missing && p.Pull == pullNever {
		return imageInfo{}, tool.Errorf(tool.BackendUnavailable,
			"the image %q is not on the docker daemon at %s, and the profile %q says pull: never", p.Image, e.endpoint.Host, p.Name).
			WithHint("get it by: docker pull %s (or docker build, docker load), or set pull to missing", p.Image)
	}
	if p.Pull != pullAlways && p.Pull != pullNever && (missing || want != (platform{}) && !want.covers(found.Platform)) {
		if err := pull(ctx, e, p, report); err != nil {
			return imageInfo{}, err
		}
		if found, err = e.image(ctx, p.Image, want); err != nil {
			return imageInfo{}, err
		}
	}
	return found, checkPlatform(p, d, want, found)
}

// covers reports whether an image of the platform got is what p asks for.
func (p platform) covers(got platform) bool {
	return p.OS == got.OS && p.Arch == got.Arch && (p.Variant == "" || got.Variant == "" || p.Variant == got.Variant)
}

// checkPlatform refuses images that the daemon cannot run. A platform that the
// profile names is believed: the daemon may have an emulator.
func checkPlatform(p profile.Profile, d daemonInfo, want platform, found imageInfo) error {
	switch {
	case found.Platform.OS != "linux":
		return tool.Errorf(tool.Unsupported, "the image %q is for %s: only Linux images can be used", p.Image, found.Platform).
			WithHint("choose a Linux image")
	case want != (platform{}) && !want.covers(found.Platform):
		return tool.Errorf(tool.BackendUnavailable, "the image %q is for %s, and the profile %q wants %s", p.Image, found.Platform, p.Name, want).
			WithHint("docker pull --platform %s %s", want, p.Image)
	case want == (platform{}) && !runs(d.Platform.Arch, found.Platform.Arch):
		return tool.Errorf(tool.BackendUnavailable, "the image %q is for %s, and the docker daemon at %s runs %s", p.Image, found.Platform, d.System, d.Platform).
			WithHint("get the image for %s, or, if the daemon can emulate the other, set platform to %q", d.Platform, found.Platform.String())
	}
	return nil
}

// runs reports whether a machine runs programs for a CPU without emulation.
func runs(machine, program string) bool {
	return machine == program || machine == "amd64" && program == "386" || machine == "arm64" && program == "arm"
}

// workerArch is the CPU that the worker must be built for: the machine's
// own wherever that runs the image as it is, since the worker needs nothing of
// the image.
func workerArch(d daemonInfo, i imageInfo) string {
	if runs(d.Platform.Arch, i.Platform.Arch) {
		return d.Platform.Arch
	}
	return i.Platform.Arch
}

// pull fetches the image and reports how far it is.
func pull(ctx context.Context, e *engine, p profile.Profile, report backends.Progress) error {
	report.Report("pulling the image " + p.Image)
	var last time.Time
	type amount struct{ done, total int64 }
	layers := map[string]amount{}
	err := e.pull(ctx, p.Image, p.Platform, func(m pullMessage) {
		if m.Progress.Total <= 0 || m.Status != "Downloading" {
			return
		}
		layers[m.Layer] = amount{m.Progress.Current, m.Progress.Total}
		if time.Since(last) < progressInterval {
			return
		}
		last = time.Now()
		var sum amount
		for _, layer := range layers {
			sum.done += layer.done
			sum.total += layer.total
		}
		report.Report(fmt.Sprintf("pulling the image %s: %d of %d MiB", p.Image, sum.done>>20, sum.total>>20))
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	failure := tool.Errorf(tool.BackendUnavailable, "the image %q cannot be pulled: %w", p.Image, err).
		WithHint("docker pull %s by hand shows more and uses your logins; an image of your own is made by docker build or docker load", p.Image)
	failure.Retryable = !errors.Is(err, errNotFound) // what a registry does not have will not come
	return failure
}
