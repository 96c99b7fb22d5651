package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// chunk is the buffer of a copy: large enough that system calls cost nothing
// beside hashing.
const chunk = 256 << 10

// PublishRequest describes a content that is about to arrive.
type PublishRequest struct {
	SessionID string
	// Name is a base name of at most 255 bytes.
	Name string
	// SourcePath and Profile say where it comes from.
	SourcePath string
	Profile    string
	// Size is what the sender declared, in bytes; negative when it did not.
	Size int64
}

// Publish stores the content of r as it arrives, hashing while it writes. More
// than [MaxSize] is [ErrTooLarge], another size than the declared one
// [ErrSize]; a failed publication leaves nothing behind. The artifact is on
// disk, synced, when Publish returns. Between reads ctx is heeded; a reader
// that blocks is the caller's to close.
func (s *Store) Publish(ctx context.Context, req PublishRequest, r io.Reader) (Artifact, error) {
	if err := errors.Join(checkSession(req.SessionID), checkName(req.Name)); err != nil {
		return Artifact{}, err
	}
	if len(req.SourcePath)+len(req.Profile) > maxSource {
		return Artifact{}, fmt.Errorf("%w: the source path of %q is too long", ErrInvalid, req.Name)
	}
	if req.Size > MaxSize {
		return Artifact{}, fmt.Errorf("%q is %d bytes large: %w", req.Name, req.Size, ErrTooLarge)
	}
	in, err := s.receive(ctx, req, r)
	if err != nil {
		return Artifact{}, err
	}
	a, err := s.commit(ctx, req, in)
	// The temporary file is still there unless it became the content.
	return a, errors.Join(err, s.remove(in.tmp))
}

// received is a content that has arrived whole and is synced.
type received struct {
	tmp  string
	sum  string // SHA-256, in hex digits
	size int64
	head []byte // enough to tell the media type from
}

// receive streams the content into a temporary file.
func (s *Store) receive(ctx context.Context, req PublishRequest, r io.Reader) (received, error) {
	f, tmp, err := s.createTmp(0o400)
	if err != nil {
		return received{}, err
	}
	in := received{tmp: tmp}
	hash := sha256.New()
	limit := int64(MaxSize)
	if req.Size >= 0 {
		limit = req.Size
	}
	buf := make([]byte, chunk)
	for err == nil {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		n, err = r.Read(buf)
		in.size += int64(n)
		if in.size > limit {
			err = tooMuch(req)
			break
		}
		hash.Write(buf[:n])
		in.head = append(in.head, buf[:min(n, sniffLen-len(in.head))]...)
		if _, werr := f.Write(buf[:n]); werr != nil {
			err = fmt.Errorf("%q cannot be stored: %w", req.Name, werr)
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
	case in.size < req.Size:
		err = fmt.Errorf("%q ended after %d of %d bytes: %w", req.Name, in.size, req.Size, ErrSize)
	default:
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return received{}, errors.Join(err, s.remove(tmp))
	}
	in.sum = hex.EncodeToString(hash.Sum(nil))
	return in, nil
}

func tooMuch(req PublishRequest) error {
	if req.Size >= 0 {
		return fmt.Errorf("%q is longer than the declared %d bytes: %w", req.Name, req.Size, ErrSize)
	}
	return fmt.Errorf("%q: %w", req.Name, ErrTooLarge)
}

// commit makes the content a blob, unless it is one already, and ties a record
// to it. Under the lock, so that nobody removes the blob in between.
func (s *Store) commit(ctx context.Context, req PublishRequest, in received) (Artifact, error) {
	id := idPrefix + in.sum
	a := Artifact{
		ID:        id,
		SessionID: req.SessionID,
		Name:      req.Name,
		MediaType: detect(req.Name, in.head, in.size).mediaType,
		Size:      in.size,
		CreatedAt: s.now().UTC(),
		Source:    Source{Path: req.SourcePath, Profile: req.Profile},
		URI:       artifactURI(req.SessionID, id, req.Name),
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Artifact{}, err
	}
	defer unlock()
	blob := blobPath(in.sum)
	info, err := s.root.Lstat(blob)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() == in.size:
		// One content is stored once.
	case err == nil || errors.Is(err, fs.ErrNotExist):
		// Absent, or damaged: what has just arrived is known to be whole.
		if err := s.root.Rename(in.tmp, blob); err != nil {
			return Artifact{}, fmt.Errorf("%q cannot be stored: %w", req.Name, err)
		}
		if err := s.syncDir(blobsDir); err != nil {
			return Artifact{}, err
		}
	default:
		return Artifact{}, fmt.Errorf("%q cannot be stored: %w", req.Name, err)
	}
	if err := s.writeRecord(a); err != nil {
		return Artifact{}, err
	}
	s.bell.Ring()
	return a, nil
}
