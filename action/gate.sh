#!/usr/bin/env bash
# Runs `writ gate` on the action's inputs. Whatever goes wrong ends with another code than 0: the job stops.
set -euo pipefail

writ=${GATE_WRIT:-writ}
if ! command -v "$writ" >/dev/null; then
    built=${RUNNER_TEMP:?RUNNER_TEMP is not set}/writ
    cargo install --quiet --locked --path "${GATE_SOURCES:?GATE_SOURCES is not set}/crates/cli" --root "$built"
    writ=$built/bin/writ
fi

words=(--require-attestation "${GATE_ATTESTATION:?no attestation was given}" --max-risk "${GATE_MAX_RISK:-allow}")
[ -z "${GATE_PLAN:-}" ] || words+=(--plan "$GATE_PLAN")
[ -z "${GATE_PLAN_JSON:-}" ] || words+=(--plan-json "$GATE_PLAN_JSON")
[ -z "${GATE_COMMAND:-}" ] || words+=("--command=$GATE_COMMAND")
[ -z "${GATE_MAX_AGE:-}" ] || words+=(--max-age "$GATE_MAX_AGE")
[ -z "${GATE_REGISTRY:-}" ] || words+=(--registry "$GATE_REGISTRY")
[ -z "${GATE_CWD:-}" ] || words+=(--cwd "$GATE_CWD")
switch() {
    case ${2:-false} in
        true) words+=("--$1") ;;
        false) ;;
        *) echo "$1 is \`$2\`: write true or false" >&2; exit 2 ;;
    esac
}
switch cross-check "${GATE_CROSS_CHECK:-}"
switch once "${GATE_ONCE:-}"
while IFS= read -r instance; do
    [ -z "$instance" ] || words+=(--trust "$instance")
done <<<"${GATE_TRUST:-}"

code=0
result=$("$writ" gate "${words[@]}" --format json) || code=$?
echo "$result"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf 'result=%s\n' "$(tr -d '\n' <<<"$result")" >>"$GITHUB_OUTPUT"
fi
# A program that ends well and says nothing, or something else, has not let anything pass.
said=$(tr -d ' \t\r\n' <<<"$result")
if [ "$code" -eq 0 ] && { [[ $said != *'"passes":true'* ]] || [[ $said != *'"valid":true'* ]]; }; then
    echo "writ ended well and did not say that the attestation passes: stopped" >&2
    code=3
fi
exit "$code"
