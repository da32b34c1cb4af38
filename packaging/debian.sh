#!/bin/sh
# Makes the Debian package: packaging/debian.sh [PROFILE]. Needs `cargo install cargo-deb`.
set -eu
cd "$(dirname "$0")/.."
profile=${1:-dist}
target=$(rustc -vV | sed -n 's/^host: //p')
cargo build --locked -p writ --profile "$profile"
folder=$profile
[ "$profile" != dev ] || folder=debug
writ=target/$target/$folder/writ
assets=target/assets
mkdir -p "$assets/man"
"$writ" man "$assets/man"
"$writ" completions bash > "$assets/writ.bash"
"$writ" completions zsh > "$assets/_writ"
"$writ" completions fish > "$assets/writ.fish"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) cargo deb -p writ --no-build --no-strip --profile "$profile" --target "$target"
