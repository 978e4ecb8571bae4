# shellcheck shell=bash
# The policy core and its glue (kernel/core) as one object, compiled as a kernel's own code is: with its
# measures against speculation, and for its unwinder. Sourced after setup.sh; $root is the repository.

# mitigations_of HEADERS: the kernel's measures, joined with "-", or "none".
mitigations_of() {
    local config=$1/include/config/auto.conf option word found=''
    while read -r word option; do
        ! grep -qx "$option=y" "$config" || found=${found:+$found-}$word
    done <<'END'
retpoline CONFIG_MITIGATION_RETPOLINE
rethunk CONFIG_MITIGATION_RETHUNK
ibt CONFIG_X86_KERNEL_IBT
padding CONFIG_CALL_PADDING
END
    printf '%s\n' "${found:-none}"
}

# core_flags MITIGATIONS: the compiler's flags, one a line.
core_flags() {
    local word
    printf '%s\n' -Crelocation-model=static -Ccode-model=kernel -Cforce-unwind-tables=no -Cjump-tables=n \
        -Zplt=yes -Zdirect-access-external-data=yes
    for word in ${1//-/ }; do
        case $word in
            retpoline) printf '%s\n' -Zretpoline -Zretpoline-external-thunk -Zindirect-branch-cs-prefix ;;
            rethunk) printf '%s\n' -Zfunction-return=thunk-extern ;;
            ibt) printf '%s\n' -Zcf-protection=branch ;;
            padding) printf '%s\n' -Zpatchable-function-entry=16,16 ;;
            none) ;;
            *) warn "core: $1: no measure \"$word\"; allowed: retpoline, rethunk, ibt, padding, none"; return 2 ;;
        esac
    done
}

# core_object MITIGATIONS DIR: compiles it in DIR; prints the path of the object. A panic that can be reached in it is
# an error, and so is a stack frame above 1 KiB. One at a time in a DIR.
core_object() {
    local target=x86_64-unknown-none out=$2/core flags library object foreign large
    local allowed='^(memcpy|memset|memmove|memcmp|__x86_.*)$'
    find_rust_with_source || {
        install_rust rustc-web cargo-web rust-web-src >&2 && find_rust_with_source
    } || { warn "core: no Rust with its library's source (rustup component add rust-src)"; return 1; }
    flags=$(core_flags "$1") || return 1
    # shellcheck disable=SC2154  # who sources this has set it
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=${flags//$'\n'/ } "$CARGO" build -q --release --locked \
        --manifest-path "$root/kernel/core/Cargo.toml" --target "$target" --target-dir "$out" \
        -Z build-std=core,compiler_builtins >&2 || return 1
    library=$out/$target/release/libpiebald_kernel_core.a
    rm -rf "$2/objects"
    mkdir "$2/objects"
    (cd "$2/objects" && ar x "$library") || return 1
    # Everything that is used is in the crate's own object; what is left is compiler_builtins.
    object=$(find "$2/objects" -name 'piebald_kernel_core*.o')
    if [ -z "$object" ] || [ "$(wc -l <<<"$object")" != 1 ]; then
        warn "core: not one object: $object"
        return 1
    fi
    foreign=$(nm -u "$object" | awk '{ print $2 }' | grep -Ev "$allowed" || true)
    if [ -n "$foreign" ]; then
        warn "core: it reaches what a kernel does not have (pb_core_panic: a panic): $foreign"
        return 1
    fi
    # As scripts/bare-metal.sh has it for the policy core.
    large=$(objdump -d --no-show-raw-insn "$object" |
        sed -n 's/^[0-9a-f]* <\(.*\)>:$/\1/p; s/.*sub *\$\(0x[0-9a-f]*\),%rsp.*/\1/p' |
        while read -r word; do
            case $word in
                0x*) [ $((word)) -le 1024 ] || printf '%s (%d B) ' "$name" "$word" ;;
                *) name=$word ;;
            esac
        done)
    if [ -n "$large" ]; then
        warn "core: stack frames above 1024 B: $large"
        return 1
    fi
    printf '%s\n' "$object"
}

# known_header TABLE: signatures that the module has code for; the others of the table are only known to exist.
known_header() {
    awk -F '\t' '$2 ~ /^[0-9]+$/ { printf "{ \"%s\", %s, \"%s\" },\n", $1, $2, $3 }' "$1"
}
