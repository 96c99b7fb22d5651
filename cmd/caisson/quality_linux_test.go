package main

import (
	"maps"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// TestQuality is what bad input and bad luck must lead to, each by name, with the
// program as users have it and a client over stdio. What needs root is
// [TestAsRootQuality], behind ssh [TestQualitySSH], for adapters [TestQualityCommand]:
// -run 'Quality/RecycledPid' and -run 'Quality/local/Terminal' look in all of them.
func TestQuality(t *testing.T) {
	group := func(name string, rows map[string]func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			for name, run := range rows {
				t.Run(name, run)
			}
		})
	}
	group("service", map[string]func(*testing.T){
		"BadFrames":       testBadFrames,
		"Lifecycle":       testLifecycle,
		"ClientGone":      testClientGone,
		"ManyAtOnce":      testManyAtOnce,
		"QuickCalls":      testQuickCalls,
		"UnreadClient":    testUnreadClient,
		"TwoServices":     testTwoServices,
		"ReadOnlyState":   testReadOnlyState,
		"Umask":           testUmask,
		"DockerDown":      testDockerDown,
		"WithoutLandlock": testWithoutLandlock,
		"OlderKernel":     testWithoutCloseRange,
		"UpdatedInPlace":  testUpdatedInPlace,
	})
	both := map[string]func(*testing.T, members){
		"ServiceKilled":         testServiceKilled,
		"WorkerKilled":          testWorkerKilled,
		"WorkerKilledUnderCall": testWorkerKilledUnderCall,
		"EnvironmentGone":       testEnvironmentGone,
		"Variables":             testVariables,
		"OlderWorker":           testOlderWorker,
	}
	t.Run("local", func(t *testing.T) {
		for name, run := range both {
			t.Run(name, func(t *testing.T) { run(t, localProfile()) })
		}
		t.Run("Hiding", testHiding)
		t.Run("Threads", testThreads)
		everyday(t, localProfile())
	})
	t.Run("docker", func(t *testing.T) {
		image := dockertest.UseShell(t)
		profile := func() members {
			return members{"backend": "docker", "image": image, "pull": "never", "max_permission_mode": "unconfined"}
		}
		maps.Copy(both, map[string]func(*testing.T, members){
			"ConnectionCut": testConnectionCut,
			"ClientGone":    testMadeAfterClient,
			"Images":        testImages,
			"ProcessLimit":  testProcessLimit,
			"Prune":         testPrune,
			"CleanupError":  testCleanupError,
			"PerCall":       testPerCall,
			"Copy":          testCopy,
		})
		for name, run := range both {
			t.Run(name, func(t *testing.T) { run(t, profile()) })
		}
		everyday(t, profile())
	})
	t.Run("divided", func(t *testing.T) {
		image := dockertest.UseShell(t)
		t.Run("OneFolder", func(t *testing.T) { testDivided(t, image) })
		t.Run("TwoWorlds", func(t *testing.T) { testTwoWorlds(t, image) })
	})
}

func localProfile() members {
	return members{"backend": "local", "max_permission_mode": "unconfined"}
}

// everyday are the rows about files and commands, in one session.
func everyday(t *testing.T, profile members) {
	w := newPlace(t, members{"it": profile}).serve().open("it", "everyday")
	for _, row := range []struct {
		name string
		run  func(*work)
	}{
		{"PathLeaves", testPathLeaves},
		{"WriteLimits", testWriteLimits},
		{"Sockets", testSockets},
		{"Stdin", testStdin},
		{"Descriptors", testDescriptors},
		{"Nonblocking", testNonblocking},
		{"Grandchild", testGrandchild},
		{"Timeout", testTimeout},
		{"Cancel", testCancel},
		{"HugeOutput", testHugeOutput},
		{"Characters", testCharacters},
		{"Names", testNames},
		{"LineEndings", testLineEndings},
		{"Terminal", testTerminal},
		{"Zombies", testZombies},
		{"Secrets", testSecretFiles},
		{"ErrorPaths", testErrorPaths},
		{"ActorsOfCommands", testActorsOfCommands},
		{"Jobs", testJobs},
	} {
		t.Run(row.name, func(t *testing.T) { row.run(w.in(t)) })
	}
}
