//! Texts that are no YAML or JSON, that exceed limits, or whose parts are cut and changed.

use super::HostileDocument;

/// A valid flow, whose bytes are cut and changed.
pub(super) const SMALL: &str = "\
meta: {schemaVersion: '2.0', name: Small}
agents:
  agentDefs:
    - {agentId: a, adapterKind: fake, modelProfile: {temperature: 0.5}}
graph:
  startNodeId: greet
  nodes:
    - {nodeId: greet, nodeKind: agent.main, agentId: a, config: {userPrompt: \"Say 'hello'\"}}
    - {nodeId: end, nodeKind: control.finish}
  edges:
    - {source: greet, target: end, condition: \"len(last.text) > 0\"}
";

/// Number of places at which the small flow is cut, and at which its bytes are changed.
const PLACES: usize = 40;
/// Bytes that replace those of the small flow.
const BYTES: &[u8] = b"{}[]:,\"'\\\0\x07\t\n-&*!|>%@`#?~\x7f\x80\xc3\xed\xff";

pub(super) fn texts() -> Vec<HostileDocument> {
    let mut texts = vec![];
    let mut add = |name: &'static str, bytes: Vec<u8>| {
        texts.push(HostileDocument::invalid(name, bytes));
    };
    for (name, text) in plain() {
        add(name, text.as_bytes().to_vec());
    }
    for (name, text) in large() {
        add(name, text.into_bytes());
    }
    for (name, bytes) in not_utf_8() {
        add(name, bytes);
    }
    for (name, text) in deep() {
        add(name, text.into_bytes());
    }
    for (name, text) in aliases() {
        add(name, text.into_bytes());
    }
    texts.extend(changed());
    texts
}

fn plain() -> Vec<(&'static str, &'static str)> {
    vec![
        ("empty", ""),
        ("spaces", " \n \n"),
        ("comment only", "# nothing\n"),
        ("word", "hello"),
        ("list", "[1, 2]"),
        ("number", "5"),
        ("null", "null"),
        ("true", "true"),
        ("empty object", "{}"),
        ("open brace", "{"),
        ("open string", "{\"meta\": \"x"),
        ("tab as indentation", "meta:\n\tname: x\n"),
        ("two documents", "meta: {}\n---\nmeta: {}\n"),
        ("directive only", "%YAML 9.9\n---\n"),
        ("tag of a language", "meta: !!python/object:os.system x\n"),
        ("binary tag", "meta: !!binary AAAA\n"),
        ("merge key", "a: &a {x: 1}\nmeta:\n  <<: *a\n"),
        ("key that is a list", "? [a, b]\n: 1\n"),
        ("key that is an object", "? {a: b}\n: 1\n"),
        ("unknown alias", "meta: *nowhere\n"),
        ("alias of itself", "meta: &m [*m]\n"),
        (
            "half of a surrogate pair",
            "{\"meta\": {\"name\": \"\\ud800\"}}",
        ),
        (
            "reversed surrogate pair",
            "{\"meta\": {\"name\": \"\\udc00\\ud800\"}}",
        ),
        (
            "half of a surrogate pair in YAML",
            "meta: {name: \"\\ud800\"}\n",
        ),
        ("unknown escape", "{\"meta\": \"\\x\"}"),
        ("control character in a string", "{\"meta\": \"a\u{1}\"}"),
        ("NUL in YAML", "meta: a\0b\n"),
        ("duplicate key", "meta: {}\nmeta: {}\n"),
        ("duplicate key in JSON", "{\"meta\": {}, \"meta\": {}}"),
        (
            "duplicate inner key in JSON",
            "{\"meta\": {\"schemaVersion\": \"2.0\", \"name\": \"a\", \"name\": \"b\"},\n\
             \"agents\": {\"agentDefs\": [{\"agentId\": \"a\", \"adapterKind\": \"fake\"}]},\n\
             \"graph\": {\"startNodeId\": \"n\", \"edges\": [],\n\
             \"nodes\": [{\"nodeId\": \"n\", \"nodeKind\": \"control.finish\"}]}}",
        ),
        ("number beyond doubles", "{\"meta\": 1e999}"),
        ("text after the end", "{\"meta\": {}} x"),
        ("comment in JSON", "{\"meta\": {} /* x */}"),
    ]
}

fn large() -> Vec<(&'static str, String)> {
    const MIB: usize = 1024 * 1024;
    let long = "x".repeat(MIB + 1);
    vec![
        ("large comment", format!("# {long}\n{SMALL}")),
        ("large name", SMALL.replace("Small", &long)),
        ("large spaces", format!("{SMALL}{}", " ".repeat(MIB))),
        ("large lines", format!("{SMALL}{}", "\n".repeat(MIB))),
        ("large key", format!("{SMALL}{long}: 1\n")),
        (
            "many keys",
            (0..60_000).map(|n| format!("k{n}: 1\n")).collect(),
        ),
        ("many values", format!("a: [{}1]", "1,".repeat(200_000))),
        (
            "many nulls in JSON",
            format!("{{\"a\": [{}null]}}", "null,".repeat(150_000)),
        ),
        (
            "number of many digits",
            format!("meta: {}\n", "9".repeat(500_000)),
        ),
        (
            "number of many digits in JSON",
            format!("{{\"meta\": {}}}", "9".repeat(500_000)),
        ),
        (
            "many anchors",
            (0..30_000).map(|n| format!("a{n}: &a{n} 1\n")).collect(),
        ),
        ("many comments", "# x\n".repeat(200_000)),
        (
            "long block text",
            format!("meta: |\n{}", "  x\n".repeat(200_000)),
        ),
        ("many quotes", format!("meta: {}", "''".repeat(400_000))),
    ]
}

fn not_utf_8() -> Vec<(&'static str, Vec<u8>)> {
    let around = |middle: &[u8]| [b"meta: {name: \"", middle, b"\"}\n"].concat();
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        ("lone continuation byte", around(b"\x80")),
        ("cut character", around(b"\xe4\xbd")),
        ("overlong character", around(b"\xc0\xaf")),
        ("encoded surrogate", around(b"\xed\xa0\x80")),
        ("character beyond Unicode", around(b"\xf5\x80\x80\x80")),
        ("byte that never occurs", around(b"\xff")),
        ("UTF-16", wide(SMALL)),
        (
            "UTF-16 with its mark",
            [b"\xff\xfe".to_vec(), wide(SMALL)].concat(),
        ),
        ("archive", b"PK\x03\x04\x14\0\0\0\x08\0\xff\xff".to_vec()),
        (
            "cut last character",
            [SMALL.as_bytes(), b"# \xf0\x9f\x98"].concat(),
        ),
    ]
}

fn deep() -> Vec<(&'static str, String)> {
    const LEVELS: [usize; 3] = [65, 130, 100_000];
    let names = [
        ["flow lists", "deep flow lists", "very deep flow lists"],
        ["JSON lists", "deep JSON lists", "very deep JSON lists"],
        [
            "JSON objects",
            "deep JSON objects",
            "very deep JSON objects",
        ],
        ["block lists", "deep block lists", "very deep block lists"],
        ["flow maps", "deep flow maps", "very deep flow maps"],
    ];
    let mut texts = vec![];
    for (level, depth) in LEVELS.into_iter().enumerate() {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        texts.push((names[0][level], format!("x: {open}{close}\n{SMALL}")));
        texts.push((names[1][level], format!("{{\"x\": {open}{close}}}")));
        let (open, close) = ("{\"a\":".repeat(depth), "}".repeat(depth));
        texts.push((names[2][level], format!("{open}1{close}")));
        texts.push((
            names[3][level],
            format!("x:\n  {}1\n{SMALL}", "- ".repeat(depth)),
        ));
        let open = "{a: ".repeat(depth);
        texts.push((names[4][level], format!("x: {open}1{close}\n{SMALL}")));
    }
    let staircase: String = (0..1_000)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    texts.push(("staircase of keys", staircase));
    texts.push(("open lists", "[".repeat(500_000)));
    texts.push(("open objects", "{\"a\":".repeat(150_000)));
    texts.push((
        "many conditions",
        SMALL.replace("len(last.text) > 0", &"(".repeat(3_000)),
    ));
    texts.push((
        "deep condition",
        SMALL.replace("len(last.text) > 0", &"!(".repeat(40)),
    ));
    texts.push((
        "long condition",
        SMALL.replace("> 0", &"|| 1 ".repeat(2_000)),
    ));
    texts
}

fn aliases() -> Vec<(&'static str, String)> {
    let tenfold = |count: usize, of: &str| vec![format!("*{of}"); count].join(", ");
    let mut doubling = "a0: &a0 [x, x]\n".to_owned();
    let mut chain = "a0: &a0 [x]\n".to_owned();
    let mut maps = "a0: &a0 {k: x}\n".to_owned();
    for level in 1..40 {
        let before = format!("a{}", level - 1);
        doubling += &format!("a{level}: &a{level} [{}]\n", tenfold(9, &before));
        chain += &format!("a{level}: &a{level} [*{before}, *{before}]\n");
        maps += &format!("a{level}: &a{level} {{k: *{before}, l: *{before}}}\n");
    }
    let quadratic = format!(
        "a: &a [{}]\nb: [{}]\n",
        "x, ".repeat(2_000),
        tenfold(2_000, "a")
    );
    let texts = format!(
        "a: &a '{}'\nb: [{}]\n",
        "x".repeat(20_000),
        tenfold(20_000, "a")
    );
    vec![
        ("ninefold aliases", doubling),
        ("doubled aliases", chain),
        ("aliases of maps", maps),
        ("aliases of one list", quadratic),
        ("aliases of one text", texts),
    ]
}

/// The small flow, cut at and changed at regular places.
fn changed() -> Vec<HostileDocument> {
    let bytes = SMALL.as_bytes();
    let place = |number: usize| number * bytes.len() / PLACES;
    let cut = (0..PLACES).map(|number| {
        let name = format!("cut at byte {}", place(number));
        HostileDocument::odd(name, &bytes[..place(number)])
    });
    let replaced = (0..PLACES).flat_map(|number| {
        BYTES.iter().map(move |byte| {
            let mut bytes = bytes.to_vec();
            bytes[place(number)] = *byte;
            let name = format!("byte {} is {byte:#04x}", place(number));
            HostileDocument::odd(name, bytes)
        })
    });
    // Every seventh keeps the corpus small and meets all places and bytes.
    cut.chain(replaced.step_by(7)).collect()
}
