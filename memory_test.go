package pagewire

import (
	"testing"
	"testing/fstest"
)

// machine is a root folder with the given files.
func machine(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestDefaultCacheSize(t *testing.T) {
	const (
		mib     = 1 << 20
		meminfo = "MemTotal:        1048576 kB\nMemFree:           65536 kB\nMemAvailable:     786432 kB\nHugePages_Total:       0\n"
		v1      = "9223372036854771712\n" // no limit
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, 256 * mib},
		{"no container", map[string]string{"proc/meminfo": meminfo}, 192 * mib},
		{"an old kernel", map[string]string{"proc/meminfo": "MemTotal: 524288 kB\n"}, 128 * mib},
		{"nonsense", map[string]string{"proc/meminfo": "MemTotal: many kB\nMemAvailable:\n", "proc/self/cgroup": "0\n:\n\n0::/\x00\n", "sys/fs/cgroup/memory.max": "-\n"}, 256 * mib},
		{"plenty", map[string]string{"proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n"}, 256 * mib},
		{"hardly any", map[string]string{"proc/meminfo": "MemTotal: 65536 kB\nMemAvailable: 1024 kB\n"}, 8 * mib},
		{"a container of its own", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "134217728\n",
		}, 32 * mib},
		{"without a limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 192 * mib},
		{"more than there is", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2147483648\n",
		}, 192 * mib},
		{"more than is free", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "943718400\n",
		}, 225 * mib},
		{"a tiny container", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "0\n",
		}, 8 * mib},
		{"a service", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/system.slice/a b.service\n",
			"sys/fs/cgroup/system.slice/a b.service/memory.max": "268435456\n",
		}, 64 * mib},
		{"the slice has less", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/system.slice/a.service\n",
			"sys/fs/cgroup/system.slice/a.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "67108864\n",
		}, 16 * mib},
		{"somebody else's", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/b/memory.max": "67108864\n",
		}, 192 * mib},
		{"a group outside of what is mounted", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../../pod\n", "sys/fs/cgroup/memory.max": "134217728\n",
		}, 32 * mib},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu,cpuacct:/a\n2:memory:/a\n1:name=systemd:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "134217728\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": v1,
		}, 32 * mib},
		{"version 1, with the path of the host", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "2:cpu,memory:/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n",
		}, 16 * mib},
		{"version 1 without a limit", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "2:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": v1,
		}, 192 * mib},
	} {
		if got := defaultCacheSize(machine(c.files)); got != c.want {
			t.Errorf("%s: %d MiB, want %d", c.name, got/mib, c.want/mib)
		}
	}
}

func TestCacheSize(t *testing.T) {
	small := machine(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "67108864\n"})
	for in, want := range map[string]int64{
		"": 16 << 20, "cachesize=8M": 8 << 20, "cachesize=1G": 1 << 30, "rsize=16M": 64 << 20, "wsize=2M,pagesize=1M": 16 << 20,
	} {
		o, err := ParseOptions(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.cacheSize(small); got != want {
			t.Errorf("%q: a cache of %d bytes, want %d", in, got, want)
		}
	}
}
