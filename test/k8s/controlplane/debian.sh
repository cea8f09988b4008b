#!/usr/bin/env bash
# Puts containerd, runc, nft, iptables, ipset and busybox of Debian into the folder $1, without installing them.
set -euo pipefail
out=$(mkdir -p "${1:?the folder}" && cd "$1" && pwd)
[ -x "$out/root/usr/bin/containerd" ] && [ -x "$out/root/usr/sbin/nft" ] && [ -x "$out/root/usr/sbin/ipset" ] && [ -x "$out/root/bin/busybox" ] && exit 0
command -v apt-get >/dev/null || { echo "debian.sh: this needs Debian's apt-get" >&2; exit 1; }
mkdir -p "$out/packages" && cd "$out/packages"
[ -n "$(ls -A /var/lib/apt/lists 2>/dev/null)" ] || apt-get update -qq
apt-get download -qq -o APT::Sandbox::User=root containerd runc nftables libnftables1 libnftnl11 libmnl0 libjansson4 libxtables12 \
	iptables libip4tc2 libip6tc2 libnetfilter-conntrack3 libnfnetlink0 ipset libipset13 busybox-static
for package in *.deb; do dpkg -x "$package" "$out/root"; done
