//! Removes all rights of a process except computing: no files, no network, no other programs,
//! limited memory and time.

use std::collections::BTreeMap;

use libc::c_long;
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Resource limits of the process.
const LIMITS: [(Resource, u64); 6] = [
    // Half of it is address space that the allocator reserves in advance.
    (Resource::Data, 2 << 30),
    (Resource::As, 8 << 30),
    (Resource::Cpu, 60),
    (Resource::Fsize, 0),
    (Resource::Core, 0),
    (Resource::Nofile, 16),
];

/// System calls for computing, own threads and open pipes.
const ALLOWED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Confining the process failed.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// A limit could not be set.
    #[error("cannot set a resource limit: {0}")]
    Limit(#[from] rustix::io::Errno),
    /// The architecture is unknown, or the kernel rejected the filter.
    #[error("cannot set the system call filter: {0}")]
    Filter(String),
}

/// Irrevocably restricts this thread and all it starts. Must be called while it is the only thread.
pub(super) fn drop_privileges() -> Result<(), ConfinementError> {
    for (resource, most) in LIMITS {
        setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )?;
    }
    let program = filter().map_err(|error| ConfinementError::Filter(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| ConfinementError::Filter(error.to_string()))
}

fn filter() -> Result<seccompiler::BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let thread = libc::CLONE_THREAD as u64;
    let is_thread = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(thread),
        thread,
    )?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    // A process may signal itself, as an aborting panic does, but no other process of the same
    // user.
    let is_own = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(std::process::id()),
    )?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![is_own])?]);
    // With "no such call" libraries fall back to an older call, such as `clone` for `clone3`, or do
    // without.
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(
        rules,
        unknown,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpStream, UdpSocket};
    use std::process::Command;

    use super::*;

    /// Reports whether this process may signal another one. Signal 0 is only a check.
    #[expect(unsafe_code, reason = "no safe function makes this call")]
    fn can_be_signalled(process: u32) -> bool {
        unsafe { libc::syscall(libc::SYS_tgkill, process, process, 0) == 0 }
    }

    /// Uses a thread of its own, because the filter applies to one thread only. The resource limits
    /// are not tested: they would apply to the whole test process.
    #[test]
    fn confined_thread_can_only_compute_and_start_threads() {
        let confined = std::thread::spawn(|| {
            seccompiler::apply_filter(&filter().unwrap()).unwrap();
            let (read, write) = (
                std::fs::File::open("/etc/hostname").is_err(),
                std::fs::write("/tmp/x", "x").is_err(),
            );
            let (tcp, udp) = (
                TcpStream::connect("127.0.0.1:1").unwrap_err(),
                UdpSocket::bind("127.0.0.1:0").is_err(),
            );
            let program = Command::new("/bin/true").status().is_err();
            let thread = std::thread::Builder::new().spawn(|| vec![1_u8; 1 << 20].len());
            let signals =
                [std::process::id(), std::os::unix::process::parent_id()].map(can_be_signalled);
            (
                read,
                write,
                tcp.kind(),
                udp,
                program,
                signals,
                thread.unwrap().join().unwrap(),
            )
        });
        let expected = (
            true,
            true,
            std::io::ErrorKind::Unsupported,
            true,
            true,
            [true, false],
            1 << 20,
        );
        assert_eq!(confined.join().unwrap(), expected);
    }
}
