#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installing on machines that have nothing yet: each step in a Debian 12 of its own, which debootstrap makes. It needs
# root, debootstrap, and the archive of Debian and PyPI in reach, and takes three quarters of an hour.
#
#   bare.sh FOLDER [STEP...]    the last commit, in FOLDER, which keeps what was made: the wheel, the Debian packages,
#                               the archive, a log of each step; the systems are removed. Steps, in this order:
#     run       `make run` in a clone, where there is only make and git: it trains a model, which then answers
#     pip       `make packages` and `pip install .` in a virtual environment; the Python program of README.md; the wheel
#     wheel     the wheel alone, where there is no compiler: the same program, and the program `seqlstm`
#     deb       `make deb`: the packages are built, and lintian has no errors
#     packages  they are installed elsewhere: the quickstart, the manual page, completion, the Python program; purged, nothing is left
#     archive   what `meson dist` packs passes `make test` elsewhere, where there is only make
#     image     the commands of packaging/Dockerfile; then its user trains a model
#
# BASE: a Debian 12 to copy instead of making one. CCACHE_DIR: a cache of compilations to use. Ends with
# `N steps, N failed`; exit status 77: it cannot run here.
set -uo pipefail
[ $# -ge 1 ] || { sed -n '3,18s/^# \{0,1\}//p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
steps=("$@")
[ $# -gt 0 ] || steps=(run pip wheel deb packages archive image)
[ "$(id -u)" = 0 ] || { echo 'not root'; exit 77; }
command -v debootstrap >/dev/null || { echo 'no debootstrap'; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

# What it takes to reach the network from here: variables, and the certificates of this machine.
certificates=/etc/ssl/certs/ca-certificates.crt
network=()
for name in http_proxy https_proxy no_proxy PIP_INDEX_URL; do
    [ -z "${!name:-}" ] || network+=("$name=${!name}")
done
[ ! -r "$certificates" ] || network+=(PIP_CERT=/root/ca-certificates.crt)

# A bare Debian 12 which can reach the network.
make_base() {
    [ ! -d "$scratch/base" ] || return 0
    if [ -n "${BASE:-}" ]; then
        cp -a "$BASE" "$scratch/base"
    else
        debootstrap --variant=minbase bookworm "$scratch/base" http://deb.debian.org/debian >"$out/debootstrap.log" 2>&1 || return
    fi
    cp -L /etc/resolv.conf /etc/hosts "$scratch/base/etc/"
    # not the hooks of apt, whose programs are not there
    ! command -v apt-config >/dev/null || apt-config dump | grep '^Acquire::' >"$scratch/base/etc/apt/apt.conf.d/99host"
    [ ! -r "$certificates" ] || cp -L "$certificates" "$scratch/base/root/ca-certificates.crt"
    mkdir -p "$scratch/base/out"
    # images of containers leave out manual pages; a base of one's own may be such an image
    rm -f "$scratch/base/etc/dpkg/dpkg.cfg.d/"*
}

# within SYSTEM: runs the commands on standard input in a copy of the base, to which it adds nothing but /out, the folder
# of the results. Its mounts end with it.
within() {
    local root=$scratch/$1
    [ -d "$root" ] || cp -a "$scratch/base" "$root" || return
    cat >"$root/root/commands"
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --fork sh -c '
        mount --bind "$1" "$1" && mount --bind "$2" "$1/out" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" ||
            exit 1
        [ -z "$3" ] || { mkdir -p "$1/ccache" && mount --bind "$3" "$1/ccache"; } || exit 1
        root=$1 cache=$3
        shift 3
        exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache "CCACHE=${cache:+ccache}" \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1 "$@" \
            bash -euxo pipefail /root/commands' \
        sh "$root" "$out" "${CCACHE_DIR:-}" ${network[@]+"${network[@]}"}
}

# The sources as `git clone` gives them, in the folder that a user would work in.
clone() {
    [ -d "$scratch/$1" ] || cp -a "$scratch/base" "$scratch/$1" || return
    mkdir -p "$scratch/$1/src" && git clone -q "$here" "$scratch/$1/src/seqlstm"
}

# The Python program of README.md.
write_program() {
    awk '/^```/ { inside = $0 == "```python"; next } inside' "$here/README.md" >"$out/readme.py"
}

step_run() {
    clone run && within run <<'END'
apt-get update
apt-get install -y --no-install-recommends make git $CCACHE
cd /src/seqlstm
make run
build/seqlstm eval quickstart --json | grep '"exact_match": 0.99'
echo 535+61 | build/seqlstm predict quickstart | grep -x 596
END
}

step_pip() {
    clone pip && write_program && within pip <<'END'
apt-get update
apt-get install -y --no-install-recommends make git python3-venv python3-dev $CCACHE
cd /src/seqlstm
make packages
python3 -m venv /root/env
. /root/env/bin/activate
pip install .
cd /root
python3 /out/readme.py >/out/readme.txt
grep '^{.loss.: ' /out/readme.txt
python3 -c "import seqlstm._step"
rm -f /out/*.whl
pip wheel --no-deps -w /out /src/seqlstm
END
}

step_wheel() {
    ls "$out"/*.whl && write_program && within wheel <<'END'
apt-get update
apt-get install -y --no-install-recommends python3-venv
if command -v cc || command -v gcc; then exit 1; fi
python3 -m venv /root/env
. /root/env/bin/activate
pip install /out/*.whl
cd /root
python3 /out/readme.py >/root/readme.txt
grep '^{.loss.: ' /root/readme.txt
seqlstm backends
seqlstm new model forecast
cd forecast
seqlstm run model.yaml --set train.epochs=2
END
}

step_deb() {
    clone deb && within deb <<'END'
apt-get update
apt-get install -y --no-install-recommends make git dpkg-dev debhelper dh-python lintian $CCACHE
[ -z "$CCACHE" ] || export PATH=/usr/lib/ccache:$PATH
mkdir /root/needs
cp -r /src/seqlstm/packaging/debian /root/needs/
apt-get build-dep -y /root/needs
cd /src/seqlstm
make deb
rm -f /out/*.deb
cp build/deb/*.deb /out/
END
}

step_packages() {
    ls "$out"/*.deb && write_program && within packages <<'END'
# all files but those of the package manager, of users and of the kernel
list_files() {
    find / -xdev \( -path /out -o -path /ccache -o -path /root -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \
        -o -path /var/lib/dpkg \) -prune -o -print | sort
}
apt-get update
apt-get install -y --no-install-recommends man-db bash-completion
needs=$(for package in /out/*.deb; do dpkg-deb -f "$package" Depends; done | tr , '\n' | grep -v seqlstm | paste -sd,)
apt-get satisfy -y --no-install-recommends "$needs"
list_files >/root/before
apt-get install -y --no-install-recommends /out/*.deb
cd /root
seqlstm run /usr/share/doc/seqlstm/examples/configs/quickstart.yaml --out quickstart
seqlstm eval quickstart --json | grep '"exact_match": 0.99'
python3 /out/readme.py >/root/readme.txt
grep '^{.loss.: ' /root/readme.txt
man seqlstm-run | col -b >/root/page
grep 'seqlstm-run - ' /root/page
set +u
. /usr/share/bash-completion/bash_completion
. /usr/share/bash-completion/completions/seqlstm
COMP_WORDS=(seqlstm prof) COMP_CWORD=1 COMP_LINE='seqlstm prof' COMP_POINT=12
$(complete -p seqlstm | sed 's/.*-F \([^ ]*\).*/\1/') seqlstm prof seqlstm
grep -w profile <<<"${COMPREPLY[*]}"
apt-get purge -y $(dpkg-query -W -f '${Package}\n' '*seqlstm*')
if dpkg-query -W '*seqlstm*'; then exit 1; fi
list_files >/root/after
diff /root/before /root/after
END
}

step_archive() {
    clone archive && within archive <<'END' || return
apt-get update
apt-get install -y --no-install-recommends make git $CCACHE
cd /src/seqlstm
make packages
meson setup build
meson dist -C build --no-tests --formats gztar
rm -f /out/*.tar.gz
cp build/meson-dist/*.tar.gz /out/
END
    rm -rf --one-file-system "${scratch:?}/archive"
    within archive <<'END'
apt-get update
apt-get install -y --no-install-recommends make $CCACHE
mkdir -p /src/seqlstm
tar xf /out/*.tar.gz -C /src/seqlstm --strip-components 1
cd /src/seqlstm
make test
END
}

# print_stage N: the commands of a stage of packaging/Dockerfile. /out/image is what one stage gives the next.
print_stage() {
    sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' "$here/packaging/Dockerfile" | awk -v stage="$1" '
        /^FROM/ { now++ }
        now != stage { next }
        sub(/^RUN /, "") { print "(" $0 ") || exit" }
        /^WORKDIR/ { print "mkdir -p " $2 "; cd " $2 }
        /^COPY \. / { print "cp -r /src/seqlstm " $3 }
        /^COPY --from=/ { print "cp -a /out/image/. " $4 }'
}

step_image() {
    clone image && { print_stage 1; echo 'rm -rf /out/image; cp -a /installed /out/image'; } | within image || return
    rm -rf --one-file-system "${scratch:?}/image"
    { print_stage 2; cat; } <<'END' | within image
su seqlstm -c 'cd && seqlstm backends && seqlstm new model forecast && seqlstm run forecast/model.yaml --set train.epochs=2'
END
}

make_base || { echo "no Debian 12: see $out/debootstrap.log"; exit 1; }
failed=0
for step in "${steps[@]}"; do
    begin=$SECONDS
    if ("step_$step") >"$out/$step.log" 2>&1; then
        echo "$step: $((SECONDS - begin)) s"
    else
        echo "$step: FAILED after $((SECONDS - begin)) s, see $out/$step.log"
        failed=$((failed + 1))
    fi
    rm -rf --one-file-system "${scratch:?}/$step"
done
echo "${#steps[@]} steps, $failed failed"
[ "$failed" -eq 0 ]
