#!/bin/bash
# Captures what many.txt holds: what went through the pipe when smbclient asked
# smbd for 150 shares, an answer of several fragments. C is the client's, S the
# server's; the SMB2 messages around it are cut off.
# Needs root, samba, smbclient, tcpdump and tshark; touches loopback alone.
set -eu -o pipefail
port=${PORT:-14557}
out=$(cd "$(dirname "$0")" && pwd)/many.txt
dir=$(mktemp -d)
trap 'kill "$(cat "$dir/smbd.pid")" 2>/dev/null; rm -rf "$dir"' EXIT

mkdir "$dir"/{share,private,lock,state,cache,pid,ncalrpc}
cat >"$dir/smb.conf" <<CONF
[global]
  server role = standalone server
  netbios name = GOLDEN
  private dir = $dir/private
  lock directory = $dir/lock
  state directory = $dir/state
  cache directory = $dir/cache
  pid directory = $dir/pid
  ncalrpc dir = $dir/ncalrpc
  bind interfaces only = yes
  interfaces = lo
  smb ports = $port
  disable netbios = yes
  disable spoolss = yes
  load printers = no
  map to guest = bad user
CONF
for i in $(seq 150); do
	printf '[share%d]\n  path = %s/share\n  comment = número %d 🗄\n  guest ok = yes\n' "$i" "$dir" "$i"
done >>"$dir/smb.conf"
smbd -F -s "$dir/smb.conf" </dev/null >"$dir/smbd.log" 2>&1 &
echo $! >"$dir/smbd.pid"
until ss -Hltn "sport = :$port" | grep -q .; do sleep 0.1; done
tcpdump -U -i lo -w "$dir/pcap" "tcp port $port" 2>"$dir/tcpdump.log" &
dump=$!
until grep -q listening "$dir/tcpdump.log"; do sleep 0.1; done
smbclient -L //127.0.0.1 -p "$port" -N -s /dev/null >"$dir/log" 2>&1
sleep 1 # until the capture has it all
kill "$dump"
wait "$dump" || :

tshark -r "$dir/pcap" -q -z follow,tcp,raw,0 2>/dev/null | awk '
	function hex(s,   i, n) {
		for (i = 1; i <= length(s); i++) n = 16 * n + index("0123456789abcdef", substr(s, i, 1)) - 1
		return n
	}
	# field returns n bytes at an offset of the message, as a little-endian number.
	function field(m, at, n,   v) {
		while (n-- > 0) v = 256 * v + hex(substr(m, 2 * (at + n) + 1, 2))
		return v
	}
	function pipe(who, m, at, n,   p) {
		p = substr(m, 2 * at + 1, 2 * n)
		if (p ~ /^0500/ || more[who]) print who, p
		# STATUS_BUFFER_OVERFLOW: the rest of this fragment comes by itself.
		more[who] = field(m, 8, 4) == 2147483653
	}
	function message(who, m,   cmd) {
		cmd = field(m, 12, 2)
		if (cmd == 11 && who == "C") pipe(who, m, field(m, 88, 4), field(m, 92, 4))
		if (cmd == 11 && who == "S") pipe(who, m, field(m, 96, 4), field(m, 100, 4))
		if (cmd == 9 && who == "C") pipe(who, m, field(m, 66, 2), field(m, 68, 4))
		if (cmd == 8 && who == "S") pipe(who, m, field(m, 66, 1), field(m, 68, 4))
	}
	/^\t?[0-9a-f]+$/ {
		who = sub(/^\t/, "") ? "S" : "C"
		buf[who] = buf[who] $0
		while (length(buf[who]) >= 8 && length(buf[who]) >= (n = 8 + 2 * hex(substr(buf[who], 3, 6)))) {
			message(who, substr(buf[who], 9, n - 8))
			buf[who] = substr(buf[who], n + 1)
		}
	}' >"$dir/out"
mv "$dir/out" "$out"
