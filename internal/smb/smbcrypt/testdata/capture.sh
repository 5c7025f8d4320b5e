#!/bin/bash
# Captures what samba.txt holds: for every dialect and algorithm, the keys that
# smbclient derived and the messages that smbclient and smbd exchanged under them.
# Needs root, samba, smbclient, tcpdump and tshark; touches loopback alone.
set -eu -o pipefail
port=${PORT:-14556}
out=$(cd "$(dirname "$0")" && pwd)/samba.txt
dir=$(mktemp -d)
trap 'kill "$(cat "$dir/smbd.pid")" 2>/dev/null; rm -rf "$dir"' EXIT

mkdir "$dir"/{share,private,lock,state,cache,pid,ncalrpc}
seq -s ' ' 300 >"$dir/share/numbers"
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
  load printers = no
  server min protocol = SMB2_02
  server smb3 signing algorithms = AES-128-GMAC, AES-128-CMAC, HMAC-SHA256
  server smb3 encryption algorithms = AES-128-GCM, AES-128-CCM, AES-256-GCM, AES-256-CCM
[data]
  path = $dir/share
CONF
printf 'Passw0rd\nPassw0rd\n' | smbpasswd -c "$dir/smb.conf" -s -a root >"$dir/log" 2>&1
smbd -F -s "$dir/smb.conf" </dev/null >"$dir/smbd.log" 2>&1 &
echo $! >"$dir/smbd.pid"
until ss -Hltn "sport = :$port" | grep -q .; do sleep 0.1; done

# messages prints one line a message, C or S and its bytes in hex, from the
# chunks of a TCP stream as tshark follows it: the server's are indented.
messages() {
	tshark -r "$1" -q -z follow,tcp,raw,0 2>/dev/null | awk '
		function hex(s,   i, n) {
			for (i = 1; i <= length(s); i++) n = 16 * n + index("0123456789abcdef", substr(s, i, 1)) - 1
			return n
		}
		/^\t?[0-9a-f]+$/ {
			who = sub(/^\t/, "") ? "S" : "C"
			buf[who] = buf[who] $0
			while (length(buf[who]) >= 8 && length(buf[who]) >= (n = 8 + 2 * hex(substr(buf[who], 3, 6)))) {
				print who, substr(buf[who], 9, n - 8)
				buf[who] = substr(buf[who], n + 1)
			}
		}'
}

# take name protocol protection signing cipher
take() {
	echo "case $1"
	tcpdump -U -i lo -w "$dir/pcap" "tcp port $port" 2>"$dir/tcpdump.log" &
	local dump=$!
	until grep -q listening "$dir/tcpdump.log"; do sleep 0.1; done
	smbclient //127.0.0.1/data -p "$port" -U root%Passw0rd -s /dev/null -m "$2" \
		--option="client min protocol=$2" --client-protection="$3" \
		--option="debug encryption=yes" --option="client smb3 signing algorithms=$4" \
		--option="client smb3 encryption algorithms=$5" \
		-c "get numbers $dir/numbers" >"$dir/log" 2>&1
	sleep 1 # until the capture has it all
	kill "$dump"; wait "$dump" || :
	awk '
		function bytes() { line = substr($0, index($0, "]") + 2, 50); gsub(/ /, "", line); return tolower(line) }
		/^(Session|Signing|App|ServerIn|ServerOut) Key/ { name[++n] = "key " $1; key[n] = bytes() }
		/^ *\[0010\]/ { key[n] = key[n] bytes() }
		END { for (i = 1; i <= n; i++) print name[i], key[i] }
	' "$dir/log"
	messages "$dir/pcap"
}

{
	take '0300 sign AES-CMAC' SMB3_00 sign AES-128-CMAC AES-128-CCM
	take '0302 seal AES-128-CCM' SMB3_02 encrypt AES-128-CMAC AES-128-CCM
	take '0311 sign HMAC-SHA256' SMB3_11 sign HMAC-SHA256 AES-128-GCM
	take '0311 sign AES-CMAC' SMB3_11 sign AES-128-CMAC AES-128-CCM
	take '0311 sign AES-GMAC' SMB3_11 sign AES-128-GMAC AES-128-GCM
	take '0311 seal AES-128-CCM' SMB3_11 encrypt AES-128-CMAC AES-128-CCM
	take '0311 seal AES-128-GCM' SMB3_11 encrypt AES-128-GMAC AES-128-GCM
	take '0311 seal AES-256-CCM' SMB3_11 encrypt AES-128-GMAC AES-256-CCM
	take '0311 seal AES-256-GCM' SMB3_11 encrypt AES-128-GMAC AES-256-GCM
} >"$dir/out"
mv "$dir/out" "$out"
