//! Opens `.skill` archives: the skill name of an accepted archive is valid.
#![no_main]

use std::io::Cursor;

use harness::skills::archive::SkillArchive;
use harness::skills::is_skill_name;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(archive) = SkillArchive::open(Cursor::new(bytes)) {
        assert!(is_skill_name(&archive.head().name));
    }
});
