//! Parser of conditions: recursive descent over the text, with a limited depth.

use serde_json::{Number, Value};

use super::error::{ConditionError, MAX_DEPTH};
use super::expression::{Comparison, Expression, Segment};
use super::scope::Root;

/// Operators of comparisons; each stands before its prefixes.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

const A_VALUE: &str = "a value: a number, a quoted text, `true`, `false`, `null`, `contains(a, b)`, \
                       `exists(a)`, `len(a)`, or a path that begins with `input`, `nodes`, `last` \
                       or `loop`";
const A_CONTINUATION: &str = "`&&`, `||`, a comparison or the end";

/// Position in the text of a condition.
pub(super) struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, ConditionError>;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    /// Parses the whole text.
    pub(super) fn condition(mut self) -> Parsed<Expression> {
        let expression = self.any()?;
        if self.rest().is_empty() {
            return Ok(expression);
        }
        Err(self.expected(A_CONTINUATION))
    }

    fn any(&mut self) -> Parsed<Expression> {
        let first = self.all()?;
        self.more("||", first, Self::all, Expression::Any)
    }

    fn all(&mut self) -> Parsed<Expression> {
        let first = self.negation()?;
        self.more("&&", first, Self::negation, Expression::All)
    }

    /// Parses the parts that follow `operator` into one list, so that a long chain is not deep.
    fn more(
        &mut self,
        operator: &str,
        first: Expression,
        part: fn(&mut Self) -> Parsed<Expression>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Parsed<Expression> {
        if !self.take(operator) {
            return Ok(first);
        }
        let mut parts = vec![first, part(self)?];
        while self.take(operator) {
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn negation(&mut self) -> Parsed<Expression> {
        if self.take("!") {
            let part = self.nested(Self::negation)?;
            return Ok(Expression::Not(Box::new(part)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let left = self.operand()?;
        let Some(comparison) = self.take_comparison() else {
            return Ok(left);
        };
        let right = self.operand()?;
        self.skip_blanks();
        let before = self.at;
        if self.take_comparison().is_some() {
            self.at = before;
            return Err(self.expected("`&&`, `||` or the end, because comparisons do not chain"));
        }
        Ok(Expression::Compare(
            comparison,
            Box::new(left),
            Box::new(right),
        ))
    }

    fn take_comparison(&mut self) -> Option<Comparison> {
        COMPARISONS
            .into_iter()
            .find_map(|(operator, comparison)| self.take(operator).then_some(comparison))
    }

    fn operand(&mut self) -> Parsed<Expression> {
        self.skip_blanks();
        let start = self.at;
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inner = self.nested(Self::any)?;
                self.demand(")", "`)`")?;
                Ok(inner)
            }
            Some('\'' | '"') => Ok(Expression::Literal(Value::String(self.quoted()?))),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number(),
            _ => match self.word() {
                "true" => Ok(Expression::Literal(Value::Bool(true))),
                "false" => Ok(Expression::Literal(Value::Bool(false))),
                "null" => Ok(Expression::Literal(Value::Null)),
                "contains" => {
                    let [whole, part] = self.arguments()?;
                    Ok(Expression::Contains(whole, part))
                }
                "exists" => {
                    let [argument] = self.arguments()?;
                    Ok(Expression::Exists(argument))
                }
                "len" => {
                    let [argument] = self.arguments()?;
                    Ok(Expression::Len(argument))
                }
                "input" => self.path(Root::Input),
                "nodes" => {
                    let node = self.name("`.` and the id of a node")?;
                    let port = self.name("`.` and an output port of the node")?;
                    self.path(Root::Port { node, port })
                }
                "last" => {
                    let before = self.at;
                    match self.name("`.text` or `.structured`")?.as_str() {
                        "text" => Ok(Expression::Path(Root::LastText, Vec::new())),
                        "structured" => self.path(Root::LastStructured),
                        _ => {
                            self.at = before;
                            Err(self.expected("`.text` or `.structured`"))
                        }
                    }
                }
                "loop" => {
                    let node = self.name("`.` and the id of a loop node")?;
                    Ok(Expression::Path(Root::Round(node), Vec::new()))
                }
                _ => {
                    self.at = start;
                    Err(self.expected(A_VALUE))
                }
            },
        }
    }

    /// Parses the arguments of a call in parentheses.
    fn arguments<const N: usize>(&mut self) -> Parsed<[Box<Expression>; N]> {
        self.demand("(", "`(`")?;
        let mut arguments = Vec::with_capacity(N);
        for position in 0..N {
            if position > 0 {
                self.demand(",", "`,` and another argument")?;
            }
            arguments.push(Box::new(self.nested(Self::any)?));
        }
        self.demand(")", "`)` after the last argument")?;
        arguments
            .try_into()
            .map_err(|_| self.expected("as many arguments as the call has"))
    }

    /// Parses the part of a path below its root.
    fn path(&mut self, root: Root) -> Parsed<Expression> {
        let mut segments = Vec::new();
        while self.rest().starts_with(['.', '[']) {
            segments.push(Segment::new(self.name("a key or an index")?));
        }
        Ok(Expression::Path(root, segments))
    }

    /// Parses `.word` or `['text']` or `[0]`.
    fn name(&mut self, what: &str) -> Parsed<String> {
        let start = self.at;
        if self.rest().starts_with('[') {
            self.at += 1;
            self.skip_blanks();
            let name = if self.rest().starts_with(['\'', '"']) {
                self.quoted()?
            } else {
                let digits = self.digits();
                if digits.is_empty() {
                    return Err(self.expected("a quoted name or an index"));
                }
                digits.to_owned()
            };
            self.demand("]", "`]`")?;
            return Ok(name);
        }
        if self.rest().starts_with('.') {
            self.at += 1;
            let word = self.word();
            if !word.is_empty() {
                return Ok(word.to_owned());
            }
        } else {
            self.at = start;
        }
        Err(self.expected(what))
    }

    fn number(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.at += usize::from(self.rest().starts_with('-'));
        let mut is_number = !self.digits().is_empty();
        let mut is_integer = true;
        if self.rest().starts_with('.') {
            self.at += 1;
            is_integer = false;
            is_number &= !self.digits().is_empty();
        }
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            is_integer = false;
            self.at += usize::from(self.rest().starts_with(['-', '+']));
            is_number &= !self.digits().is_empty();
        }
        let text = &self.text[start..self.at];
        let number = if is_number && self.word().is_empty() {
            parse_number(text, is_integer)
        } else {
            None
        };
        number
            .map(|number| Expression::Literal(Value::Number(number)))
            .ok_or_else(|| {
                self.at = start;
                self.expected("a number such as `3`, `-0.5` or `1e6`")
            })
    }

    fn quoted(&mut self) -> Parsed<String> {
        let start = self.at;
        let mut chars = self.rest().chars();
        let quote = chars.next().unwrap_or('\'');
        let inner = chars.as_str();
        let Some(end) = inner.find(quote) else {
            self.at = start;
            return Err(self.expected("a text with a quote at its end"));
        };
        self.at += 1 + end + 1;
        Ok(inner[..end].to_owned())
    }

    /// Consumes letters, digits, `_` and `-`.
    fn word(&mut self) -> &'t str {
        self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '-')
    }

    fn digits(&mut self) -> &'t str {
        self.take_while(|c| c.is_ascii_digit())
    }

    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !accepts(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Consumes blanks and then `token`, if it is there.
    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn demand(&mut self, token: &str, what: &str) -> Parsed<()> {
        if self.take(token) {
            return Ok(());
        }
        Err(self.expected(what))
    }

    fn nested(&mut self, part: fn(&mut Self) -> Parsed<Expression>) -> Parsed<Expression> {
        if self.depth == MAX_DEPTH {
            return Err(self.expected(&format!("at most {MAX_DEPTH} levels of nesting")));
        }
        self.depth += 1;
        let parsed = part(self)?;
        self.depth -= 1;
        Ok(parsed)
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> ConditionError {
        ConditionError {
            offset: self.at,
            expected: what.to_owned(),
        }
    }
}

fn parse_number(text: &str, is_integer: bool) -> Option<Number> {
    let integer = is_integer
        .then(|| text.parse::<i64>().map(Number::from).ok())
        .flatten();
    integer.or_else(|| Number::from_f64(text.parse().ok()?))
}
