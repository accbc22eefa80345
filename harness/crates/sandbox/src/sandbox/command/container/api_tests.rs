//! Tests of the launch script and of the reader of its report.

use super::*;

#[test]
fn read_report_finds_report_in_terminal_output() {
    let shown = "$ bash x\r\nm1 end 7\r\nb3V0\r\nCg==\r\nm1\r\nZXJyCg==\r\nm1\r\n$ ";
    let report = read_report(shown, "m1").unwrap();
    assert_eq!(
        report,
        Report {
            end: CommandEnd::Exited(7),
            out: b"out\n".to_vec(),
            err: b"err\n".to_vec()
        }
    );
    assert_eq!(
        read_report("m1 late 137\nm1\nm1\n", "m1").unwrap().end,
        CommandEnd::TimedOut
    );
}

#[test]
fn read_report_rejects_invalid_reports() {
    for broken in [
        "",
        "m1",
        "m1 end",
        "m1 end x\nm1\nm1",
        "m1 odd 0\nm1\nm1",
        "m1 end 0\n!!\nm1\nm1",
        "m1 end 0\nb3V0\nm1\nZXJy",
        "m2 end 0\nm2\nm2",
    ] {
        assert_eq!(read_report(broken, "m1"), None, "{broken}");
    }
}

#[test]
fn script_quotes_command_as_one_word() {
    let limits = CommandLimits::default();
    let job = CommandJob {
        mark: "m1",
        command: "echo 'it'\\''s'; $(x)",
        time_limit: Duration::from_millis(1500),
        limits: &limits,
    };
    let script = script(job);
    let first = script.lines().next().unwrap();
    assert_eq!(
        first,
        r"set -- m1 1.500 8388608 2097152 1048576 1024 3600 'echo '\''it'\''\'\'''\''s'\''; $(x)'"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn command_is_killed_before_it_has_started() {
    let job = CommandJob {
        mark: &format!("{:032x}", rand::random::<u128>()),
        command: "echo started",
        time_limit: Duration::from_millis(100),
        limits: &CommandLimits::default(),
    };
    // Delays the process of the command between its fork and its start.
    let slow = format!("umask() {{ sleep 1; }}\n{}", script(job));
    let ran = tokio::process::Command::new("/bin/bash")
        .args(["-c", &slow])
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    // 137: the launcher has killed the process and has seen its end.
    assert_eq!(
        printed.lines().next(),
        Some(format!("{} late 137", job.mark).as_str())
    );
    let report = read_report(&printed, job.mark).unwrap();
    assert_eq!((report.end, report.out), (CommandEnd::TimedOut, Vec::new()));
}
