package docker

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/volume"
)

func (e *engine) volume(ctx context.Context, name string) (volumeInfo, error) {
	v, err := e.api.VolumeInspect(ctx, name)
	if err != nil {
		return volumeInfo{}, e.failed("looking for the volume "+name, err)
	}
	return volumeOf(&v), nil
}

func volumeOf(v *volume.Volume) volumeInfo {
	return volumeInfo{Name: v.Name, Labels: v.Labels, CreatedAt: v.CreatedAt, Mountpoint: v.Mountpoint}
}

// unusedVolumes lists the volumes with the labels that no container has.
func (e *engine) unusedVolumes(ctx context.Context, labels ...string) ([]volumeInfo, error) {
	args := withLabels(labels)
	args.Add("dangling", "true")
	found, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: args})
	if err != nil {
		return nil, e.failed("listing volumes", err)
	}
	infos := make([]volumeInfo, 0, len(found.Volumes))
	for _, v := range slices.DeleteFunc(found.Volumes, func(v *volume.Volume) bool { return v == nil }) {
		infos = append(infos, volumeOf(v))
	}
	return infos, nil
}

// removeVolume removes a volume that no container uses; one in use is errConflict.
func (e *engine) removeVolume(ctx context.Context, name string) error {
	return e.failed("removing the volume "+name, e.api.VolumeRemove(ctx, name, false))
}
