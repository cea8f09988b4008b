#!/bin/sh
# Installs Mneme: memnode and memctl, their man pages and completions, into a folder of yours.
#
#   curl -fsSL https://HOST/install.sh | sh -s -- --from https://HOST
#
# Nothing is changed until the archive is here, its checksum is right and its programs run. No
# other rights are asked for than you have. All of it is in braces: a shell that gets only a
# part of it does nothing.
{
set -eu

usage() {
	cat <<'END'
Usage: install.sh [--from URL] [--prefix FOLDER]

Installs memnode and memctl, their man pages and completions.

  --from URL        the folder with the release's archives and SHA256SUMS (MNEME_RELEASES);
                    https, or http on this machine
  --prefix FOLDER   below which they go: bin, share/man, ... (default: ~/.local)
  --help            shows this

It needs curl (or GNU wget), tar, gzip, and sha256sum, shasum or openssl.
END
}

fail() { # WHAT [HINT]
	printf 'install: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# checks the address, and says by which protocols it may be asked.
check_from() {
	[ -n "$from" ] || fail "nobody has said where releases are, and Mneme has no public host yet" \
		"give --from URL or set MNEME_RELEASES to the folder that has SHA256SUMS, which \`make release\` makes; or build it from source: \`make install\`"
	while [ "${from%/}" != "$from" ]; do from=${from%/}; done
	case $from in
	*@* | *\?* | *\#* | *[[:space:]]*) fail "the address of the releases has more than a host and a folder" "leave out user, password, ?, # and spaces" ;;
	https://?*) protocols='=https' ;;
	http://127.0.0.1 | http://127.0.0.1[:/]* | http://localhost | http://localhost[:/]*) protocols='=http,https' ;;
	http://*) fail "$from would be asked in clear, where anybody on the way can answer" "use https://; http:// is for this machine only" ;;
	*) fail "the address of the releases is not like https://example.org/mneme" "it is that of the folder that has SHA256SUMS" ;;
	esac
}

# finds system and arch, as archives are called.
find_platform() {
	system=$(uname -s) arch=$(uname -m)
	case $system in
	Linux) system=linux ;;
	Darwin)
		system=darwin
		# A shell under Rosetta says x86_64 on an arm64 machine.
		[ "$(sysctl -n sysctl.proc_translated 2>/dev/null || :)" != 1 ] || arch=arm64
		;;
	MINGW* | MSYS* | CYGWIN* | Windows*) fail "this script does not install on Windows" "download the archive for windows-amd64 from $from, unpack it and put its folder bin into the PATH" ;;
	*) fail "there is no archive for $system" "build it from source: \`make install\` in a checkout" ;;
	esac
	case $arch in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no archive for $system on $arch" "build it from source: \`make install\` in a checkout" ;;
	esac
}

check_tools() {
	for tool in uname mktemp tar gzip find sort grep cut cp mv mkdir chmod rm; do
		has "$tool" || fail "$tool is missing" "install it, or unpack the archive by hand"
	done
	if has sha256sum; then
		sum='sha256sum'
	elif has shasum; then
		sum='shasum -a 256'
	elif has openssl; then
		sum='openssl dgst -sha256 -r'
	else
		fail "nothing here computes SHA-256 checksums" "install sha256sum (coreutils), shasum or openssl"
	fi
	if has curl; then
		get=get_by_curl
	elif has wget && wget --version 2>/dev/null | grep -q '^GNU Wget'; then
		get=get_by_wget
	elif has wget; then
		fail "this wget may not check certificates" "install curl, or GNU wget"
	else
		fail "curl is missing" "install curl, or GNU wget"
	fi
}

get_by_curl() { # NAME
	curl --fail --silent --show-error --location --max-redirs 5 --proto "$protocols" --proto-redir "$protocols" \
		--connect-timeout 20 --speed-limit 1 --speed-time 60 --output "$tmp/$1" "$from/$1"
}

# wget would follow a redirection to anywhere, so it follows none.
get_by_wget() { # NAME
	wget --no-verbose --max-redirect=0 --tries=1 --timeout=60 --output-document="$tmp/$1" "$from/$1"
}

get() { # NAME
	"$get" "$1" || fail "cannot download $from/$1, or not all of it" "look at the address, and whether this machine may reach it; nothing was changed"
}

# downloads the archive for this platform to $tmp, and leaves what is in it in $unpacked.
download() {
	get SHA256SUMS
	line=$(grep -E "^[0-9a-f]{64} [ *]mneme-v[0-9A-Za-z.+-]+-$system-$arch\.tar\.gz\$" "$tmp/SHA256SUMS" || :)
	if [ -z "$line" ]; then
		grep -qE '^[0-9a-f]{64} [ *]mneme-v' "$tmp/SHA256SUMS" ||
			fail "$from/SHA256SUMS does not list the archives of a release of Mneme" "look at the address: it is that of the folder with the files of \`make release\`"
		fail "this release has no archive for $system on $arch" "build it from source: \`make install\` in a checkout"
	fi
	want=${line%% *} archive=${line##*[ *]}
	case $line in *'
'*) fail "$from/SHA256SUMS lists several archives for $system on $arch" "its folder is to have one release" ;; esac
	printf 'downloading %s from %s\n' "$archive" "$from"
	get "$archive"
	got=$($sum <"$tmp/$archive" | cut -d ' ' -f 1)
	[ "$got" = "$want" ] || fail "$archive has the checksum $got, and SHA256SUMS says $want: it is not what was released, or a part of it" "try again; if it stays so, tell who looks after $from. Nothing was changed"
	name=${archive%.tar.gz}
	version=${name#mneme-} version=${version%-"$system"-"$arch"}
	gzip -dc "$tmp/$archive" >"$tmp/archive.tar" && (cd "$tmp" && tar -xf archive.tar) || fail "cannot unpack $archive" "is there room in ${TMPDIR:-/tmp}?"
	unpacked=$tmp/$name
	[ -f "$unpacked/bin/memnode" ] && [ -f "$unpacked/bin/memctl" ] || fail "$archive has no memnode and memctl in it"
}

# copies a file beside its place in the prefix, from where it gets there at once.
put_beside() { # FILE, relative
	into=$prefix/${1%/*}
	mkdir -p "$into" 2>/dev/null && [ -w "$into" ] || fail "$into cannot be written" "choose another folder with --prefix, such as --prefix \"\$HOME/.local\""
	[ ! -d "$prefix/$1" ] || fail "$prefix/$1 is a folder" "move it away, or choose another --prefix"
	cp "$unpacked/$1" "$into/.${1##*/}.mneme-new" || fail "$into cannot be written" "is there room on the disk?"
	case $1 in bin/*) chmod 755 "$into/.${1##*/}.mneme-new" ;; *) chmod 644 "$into/.${1##*/}.mneme-new" ;; esac
}

# puts all files into their places, each at once, the programs last.
put() {
	(cd "$unpacked" && find bin share -type f) | sort -r >"$tmp/files"
	while read -r file; do put_beside "$file"; done <"$tmp/files"
	for program in memnode memctl; do
		"$prefix/bin/.$program.mneme-new" --version >/dev/null ||
			fail "the $program of $archive does not run here" "is $prefix on a disk from which programs may run? Nothing was changed"
	done
	replaced=
	[ ! -e "$prefix/bin/memnode" ] || replaced=1
	while read -r file; do
		mv -f "$prefix/${file%/*}/.${file##*/}.mneme-new" "$prefix/$file" || fail "cannot write $prefix/$file" "run this again: what is in its place already is whole"
	done <"$tmp/files"
}

clean() {
	[ ! -f "$tmp/files" ] || while read -r file; do rm -f "$prefix/${file%/*}/.${file##*/}.mneme-new"; done <"$tmp/files"
	rm -rf "$tmp"
}

say_next() {
	printf 'memnode and memctl %s are in %s/bin, their man pages and completions in %s/share\n' "$version" "$prefix" "$prefix"
	[ -z "$replaced" ] || printf 'a memnode that runs goes on as it was until it is started again\n'
	case :$PATH: in
	*":$prefix/bin:"*)
		found=$(command -v memctl || :)
		[ "$found" = "$prefix/bin/memctl" ] || printf 'another memctl comes first in the PATH: %s\n' "$found"
		printf 'next: memnode\n'
		;;
	*) printf 'next: export PATH="%s/bin:$PATH"    (in ~/.profile for good), and then memnode\n' "$prefix" ;;
	esac
}

main() {
	from=${MNEME_RELEASES:-} prefix=
	while [ $# -gt 0 ]; do
		case $1 in
		--from | --prefix)
			[ $# -ge 2 ] || fail "$1 is without a value" "install.sh --help shows what it takes"
			case $1 in --from) from=$2 ;; *) prefix=$2 ;; esac
			shift
			;;
		--from=*) from=${1#*=} ;;
		--prefix=*) prefix=${1#*=} ;;
		-h | --help)
			usage
			exit 0
			;;
		*) fail "it does not take $1" "install.sh --help shows what it takes" ;;
		esac
		shift
	done
	if [ -z "$prefix" ]; then
		[ -n "${HOME:-}" ] || fail "HOME is not set" "say with --prefix where to install"
		prefix=$HOME/.local
	fi
	case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
	while [ "$prefix" != / ] && [ "${prefix%/}" != "$prefix" ]; do prefix=${prefix%/}; done
	check_tools
	check_from
	find_platform
	tmp=$(mktemp -d "${TMPDIR:-/tmp}/mneme-install.XXXXXX") || fail "no folder can be made in ${TMPDIR:-/tmp}" "set TMPDIR to a folder with room"
	trap clean EXIT
	trap 'exit 130' HUP INT TERM
	download
	put
	say_next
}

main "$@"
exit
}
