package artifacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	rounds   = 25
	contents = 3
)

// runPublisher publishes and deletes the same few contents over and over; every
// content that was published must be readable until its own record is deleted.
func runPublisher(dir string) int {
	if err := churn(context.Background(), dir, fmt.Sprintf("p-%d", os.Getpid())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func churn(ctx context.Context, dir, session string) (err error) {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := range rounds {
		text := fmt.Sprintf("content %d", i%contents)
		a, err := s.Publish(ctx, PublishRequest{SessionID: session, Name: "n", Size: int64(len(text))}, strings.NewReader(text))
		if err != nil {
			return err
		}
		if data, _, err := s.Read(a.ID, 0, 0); err != nil || string(data) != text {
			return fmt.Errorf("published content reads as %q: %w", data, err)
		}
		if err := s.Delete(ctx, a.URI); err != nil {
			return err
		}
	}
	return nil
}

func TestTwoProcessesShareAStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "artifacts")
	first, second := publisher(t, dir), publisher(t, dir)
	if err := errors.Join(first.Start(), second.Start()); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			if err := churn(t.Context(), dir, fmt.Sprintf("s-%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(first.Wait(), second.Wait()); err != nil {
		t.Error(err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestLockHeldElsewhereHeedsTheContext(t *testing.T) {
	s, dir, _ := newStore(t)
	other := openStore(t, dir, Options{})
	unlock, err := other.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Publish(ctx, PublishRequest{SessionID: "s", Name: "n", Size: -1}, strings.NewReader("x"))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("published while locked: %v", err)
	}
	unlock()
	publish(t, s, "s", "n", "x")
}

// A session may be deleted while another one is listed beside it.
func TestListOfWhatIsRemovedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if names, err := list(dir); err != nil || len(names) > 0 {
		t.Errorf("%q, %v", names, err)
	}
}
