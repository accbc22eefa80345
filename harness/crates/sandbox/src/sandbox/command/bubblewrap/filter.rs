//! System calls that a sandboxed command may not make.
//!
//! Namespaces hide objects; the filter blocks parts of the kernel that have been used to break out
//! of namespaces, or that no namespace covers: keyrings, other processes' memory, eBPF, `io_uring`,
//! mounts, nested user namespaces, hypervisor sockets.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

/// Rejected with `EPERM`, for all arguments.
const REFUSED: &[c_long] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // keyrings
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // kernel interfaces
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_syslog,
    // namespaces and mounts
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // the machine
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_personality,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
];

/// Flags of `clone` that create a namespace.
const NEW_NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests of `ioctl` that inject terminal input.
const TERMINAL_INPUT: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Socket families that programs need. All others bypass the network namespace, or reach the
/// kernel's cryptography or rarely reviewed code.
const ALLOWED_FAMILIES: &[libc::c_int] = &[
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// Socket types that read or write raw packets.
const RAW_KINDS: &[libc::c_int] = &[libc::SOCK_RAW, SOCK_PACKET];
/// The name is missing in some C libraries.
const SOCK_PACKET: libc::c_int = 10;

/// Bits of the socket type without its flags.
const KIND_BITS: u64 = 0xf;

/// Returns the filter in the format of the kernel.
pub(super) fn program() -> Result<Vec<u8>, seccompiler::BackendError> {
    let equals = |argument, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let has_bits = |argument, bits| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(bits),
            bits,
        )
    };
    let is_not = |argument, value: libc::c_int| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            value as u64,
        )
    };
    let any = |conditions: Vec<Result<SeccompCondition, _>>| {
        conditions
            .into_iter()
            .map(|condition| SeccompRule::new(vec![condition?]))
            .collect::<Result<Vec<_>, _>>()
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(
        libc::SYS_clone,
        any(NEW_NAMESPACES
            .iter()
            .map(|flag| has_bits(0, *flag as u32 as u64))
            .collect())?,
    );
    rules.insert(
        libc::SYS_ioctl,
        any(TERMINAL_INPUT
            .iter()
            .map(|request| equals(1, *request))
            .collect())?,
    );
    rules.insert(libc::SYS_socket, sockets(is_not)?);
    rules.insert(libc::SYS_socketpair, any(vec![is_not(0, libc::AF_UNIX)])?);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        refused,
        std::env::consts::ARCH.try_into()?,
    )?;
    let compiled: seccompiler::BpfProgram = filter.try_into()?;
    Ok(unknown_calls()
        .iter()
        .chain(&compiled)
        .flat_map(bytes)
        .collect())
}

/// Rules for rejected sockets: other families, netlink except for routes (which name resolution
/// uses), and raw sockets.
fn sockets(
    is_not: impl Fn(u8, libc::c_int) -> Result<SeccompCondition, seccompiler::BackendError>,
) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let is = |argument, bits, value: libc::c_int| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(bits),
            value as u64,
        )
    };
    let other_families = ALLOWED_FAMILIES
        .iter()
        .map(|family| is_not(0, *family))
        .collect::<Result<_, _>>()?;
    let other_netlink = vec![
        is(0, u32::MAX.into(), libc::AF_NETLINK)?,
        is_not(2, libc::NETLINK_ROUTE)?,
    ];
    let raw = RAW_KINDS
        .iter()
        .map(|kind| Ok(vec![is_not(0, libc::AF_NETLINK)?, is(1, KIND_BITS, *kind)?]));
    let raw = raw.collect::<Result<Vec<_>, seccompiler::BackendError>>()?;
    [other_families, other_netlink]
        .into_iter()
        .chain(raw)
        .map(SeccompRule::new)
        .collect()
}

/// Instructions before the filter that return "no such call": for `clone3`, because a filter cannot
/// read its flags and programs then fall back to `clone`; and for the x32 call numbers, which some
/// kernels accept in addition.
fn unknown_calls() -> Vec<sock_filter> {
    const LOAD_NUMBER: sock_filter = sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: 0,
    };
    const NO_SUCH_CALL: sock_filter = sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: 0x0005_0000 | libc::ENOSYS as u32,
    };
    let skip_unless = |code, k| sock_filter {
        code,
        jt: 0,
        jf: 1,
        k,
    };
    let mut program = vec![
        LOAD_NUMBER,
        skip_unless(0x15, libc::SYS_clone3 as u32),
        NO_SUCH_CALL,
    ];
    if cfg!(target_arch = "x86_64") {
        program.extend([skip_unless(0x35, 0x4000_0000), NO_SUCH_CALL]);
    }
    program
}

fn bytes(step: &sock_filter) -> [u8; 8] {
    let [c0, c1] = step.code.to_ne_bytes();
    let [k0, k1, k2, k3] = step.k.to_ne_bytes();
    [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
}
