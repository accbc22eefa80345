# Sourced by the scripts here: finds and installs software other than Rust.

# install_packages NAME..: installs system packages with apt, as root or through sudo; fails if neither is possible.
install_packages() {
    local as_root=()
    if ((EUID != 0)); then
        if ! sudo -n true 2>/dev/null; then
            echo "cannot install $*: neither root nor sudo without a password" >&2
            return 1
        fi
        as_root=(sudo -n)
    fi
    if ! command -v apt-get >/dev/null; then
        echo "cannot install $*: apt-get is missing" >&2
        return 1
    fi
    echo "installing $*"
    "${as_root[@]}" apt-get update -qq &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@"
}

# postgres_bindir: prints the newest folder with initdb and pg_ctl, or nothing if there is none.
postgres_bindir() {
    local candidate candidates
    candidates=$(
        pg_config --bindir 2>/dev/null || true
        printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort --reverse
        dirname "$(command -v initdb || true)"
    )
    while read -r candidate; do
        if [[ -x $candidate/initdb && -x $candidate/pg_ctl ]]; then
            echo "$candidate"
            return
        fi
    done <<<"$candidates"
}
