//! Random answers for tests: text of eight scripts with every kind of block.

/// Repeatable random numbers.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Creates the numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `most`; 0 if `most` is 0.
    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const WORDS: [&[&str]; 8] = [
    &[
        "plain", "word", "a_b", "2*3", "x<y&z>", "@bob", "end.", "<b>", "`", "#1", "(c)",
    ],
    &["слово", "текст", "ответ,", "и"],
    &["λόγος", "ἀρχή", "τέλος·"],
    &["كلمة", "نص", "جواب،"],
    &["מילה", "שָׁלוֹם", "טקסט"],
    &["शब्द", "उत्तर", "क्षत्रिय।"],
    &["回答内容很长没有空格。", "これは長い文です", "한국어", "、"],
    &["👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "e\u{301}\u{302}", "🎉🎉"],
];

/// Contents of an answer in addition to text.
#[derive(Debug, Clone, Copy)]
pub struct Kinds {
    /// Links, also such that must not become links.
    pub links: bool,
    /// Tables.
    pub tables: bool,
}

fn words(numbers: &mut Numbers, most: usize) -> String {
    let script = numbers.below(WORDS.len());
    let count = 1 + numbers.below(most);
    let chosen: Vec<&str> = (0..count).map(|_| numbers.pick(WORDS[script])).collect();
    chosen.join(" ")
}

fn sentence(numbers: &mut Numbers, kinds: Kinds) -> String {
    let mut text = String::new();
    for _ in 0..1 + numbers.below(4) {
        let inner = words(numbers, 12);
        let styled = match numbers.below(9) {
            0 => format!("**{inner}**"),
            1 => format!("*{inner}*"),
            2 => format!("~~{inner}~~"),
            3 => format!("`{}`", inner.replace('`', "'")),
            4 if kinds.links => format!("[{}](https://x.example/{})", inner, numbers.below(9999)),
            5 if kinds.links => format!("[{}](javascript:a)", words(numbers, 2)),
            6 => format!("***{inner}***"),
            _ => inner,
        };
        text.push_str(&styled);
        text.push_str(numbers.pick(&[" ", "\n", " ", ""]));
    }
    text.trim().to_owned()
}

fn block(numbers: &mut Numbers, kinds: Kinds, depth: usize) -> String {
    match numbers.below(10) {
        0 => format!(
            "{} {}",
            numbers.pick(&["#", "##", "####"]),
            words(numbers, 5)
        ),
        1 => {
            let lines: Vec<String> = (0..1 + numbers.below(15))
                .map(|_| words(numbers, 10).replace('`', "'"))
                .collect();
            format!(
                "```{}\n{}\n```",
                numbers.pick(&["rust", "", "python"]),
                lines.join("\n")
            )
        }
        2 if kinds.tables => {
            let row = |numbers: &mut Numbers| {
                let cells: Vec<String> = (0..3)
                    .map(|_| words(numbers, 3).replace(['`', '|'], "'"))
                    .collect();
                format!("| {} |", cells.join(" | "))
            };
            let rows: Vec<String> = (0..1 + numbers.below(12)).map(|_| row(numbers)).collect();
            format!("{}\n|---|---|---|\n{}", row(numbers), rows.join("\n"))
        }
        3 if depth < 4 => indented(numbers, kinds, depth, ">"),
        4 if depth < 4 => indented(numbers, kinds, depth, "-"),
        5 if depth < 4 => indented(numbers, kinds, depth, "7."),
        6 => "---".to_owned(),
        _ => sentence(numbers, kinds),
    }
}

fn indented(numbers: &mut Numbers, kinds: Kinds, depth: usize, mark: &str) -> String {
    let mut text = String::new();
    for _ in 0..1 + numbers.below(4) {
        let inner = block(numbers, kinds, depth + 1);
        for (number, line) in inner.lines().enumerate() {
            let lead = if number == 0 || mark == ">" {
                mark.to_owned()
            } else {
                " ".repeat(mark.len())
            };
            text.push_str(&format!("{lead} {line}\n"));
        }
    }
    text.trim_end().to_owned()
}

/// Returns a random answer of about `length` bytes.
pub fn answer(seed: u64, length: usize, kinds: Kinds) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&block(&mut numbers, kinds, 0));
        text.push_str("\n\n");
    }
    text
}
