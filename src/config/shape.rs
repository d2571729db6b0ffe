//! What a key's value may look like: its type, its bounds, its default. The refusals' words are
//! Kafka's, since tools show them to users.

/// A key's type, as Kafka's `ConfigDef` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// 32 bits.
    Int,
    /// 64 bits.
    Long,
    /// 16 bits.
    Short,
    /// A floating-point number.
    Double,
    /// Text.
    String,
    /// Texts separated by commas.
    List,
    /// The name of a Java class.
    Class,
    /// Text that is never shown.
    Password,
}

impl Kind {
    /// The name in Kafka's messages.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Int => "INT",
            Self::Long => "LONG",
            Self::Short => "SHORT",
            Self::Double => "DOUBLE",
            Self::String => "STRING",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }

    /// The number in DescribeConfigs (KIP-569).
    #[must_use]
    pub(crate) fn code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    /// Whether its values are whole numbers.
    #[cfg(test)]
    pub(super) fn is_whole(self) -> bool {
        self.range() != (0, 0)
    }

    fn range(self) -> (i64, i64) {
        match self {
            Self::Int => (i32::MIN.into(), i32::MAX.into()),
            Self::Short => (i16::MIN.into(), i16::MAX.into()),
            Self::Long => (i64::MIN, i64::MAX),
            Self::Boolean
            | Self::Double
            | Self::String
            | Self::List
            | Self::Class
            | Self::Password => (0, 0),
        }
    }
}

/// Which values of a type are taken.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Any,
    Between(i64, i64),
    /// 1 to 9, or −1.
    GzipLevel,
    Words(&'static [&'static str]),
    WordsAnyCase(&'static [&'static str]),
    /// `*`, or pairs of numbers.
    Replicas,
}

/// A key's type, bounds and default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The type.
    pub(crate) kind: Kind,
    rule: Rule,
    /// The value where none is set; Kafka's `null` where `None`.
    pub(crate) default: Option<&'static str>,
}

pub(super) const BOOLEAN: Shape = any(Kind::Boolean);
pub(super) const INT: Shape = any(Kind::Int);
pub(super) const LONG: Shape = any(Kind::Long);
pub(super) const SHORT: Shape = any(Kind::Short);
pub(super) const DOUBLE: Shape = any(Kind::Double);
pub(super) const STRING: Shape = any(Kind::String);
pub(super) const LIST: Shape = any(Kind::List);
pub(super) const CLASS: Shape = any(Kind::Class);
pub(super) const PASSWORD: Shape = any(Kind::Password);
pub(super) const GZIP_LEVEL: Shape = ruled(Kind::Int, Rule::GzipLevel);
pub(super) const REPLICAS: Shape = ruled(Kind::List, Rule::Replicas);

const fn any(kind: Kind) -> Shape {
    ruled(kind, Rule::Any)
}

const fn ruled(kind: Kind, rule: Rule) -> Shape {
    Shape { kind, rule, default: None }
}

/// An `INT` of at least so much.
pub(super) const fn int(least: i64) -> Shape {
    ruled(Kind::Int, Rule::Between(least, i64::MAX))
}

/// A `LONG` of at least so much.
pub(super) const fn long(least: i64) -> Shape {
    ruled(Kind::Long, Rule::Between(least, i64::MAX))
}

/// A `SHORT` of at least so much.
pub(super) const fn short(least: i64) -> Shape {
    ruled(Kind::Short, Rule::Between(least, i64::MAX))
}

/// A `DOUBLE` of at least so much.
pub(super) const fn double(least: i64) -> Shape {
    ruled(Kind::Double, Rule::Between(least, i64::MAX))
}

/// One of these words.
pub(super) const fn words(words: &'static [&'static str]) -> Shape {
    ruled(Kind::String, Rule::Words(words))
}

/// One of these words, in any case.
pub(super) const fn words_any_case(words: &'static [&'static str]) -> Shape {
    ruled(Kind::String, Rule::WordsAnyCase(words))
}

/// Any of these words.
pub(super) const fn list_of(words: &'static [&'static str]) -> Shape {
    ruled(Kind::List, Rule::Words(words))
}

impl Shape {
    /// With this default.
    pub(super) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// With this upper bound.
    pub(super) const fn most(self, most: i64) -> Self {
        let least = if let Rule::Between(least, _) = self.rule { least } else { i64::MIN };
        Self { rule: Rule::Between(least, most), ..self }
    }

    /// The value as Kafka would print it after parsing, or the message of Kafka's
    /// `ConfigException`, with the key's name.
    pub(crate) fn canonical(&self, name: &str, value: &str) -> Result<String, String> {
        self.parse(value).map_err(|fault| {
            let Fault { value, reason } = fault;
            let reason = reason.replace("{name}", name);
            format!("Invalid value {value} for configuration {name}: {reason}")
        })
    }

    /// The same, but what is wrong without the key's name and the value.
    pub(super) fn check(&self, name: &str, value: &str) -> Result<String, String> {
        self.parse(value).map_err(|fault| fault.reason.replace("{name}", name))
    }

    fn parse(&self, value: &str) -> Result<String, Fault> {
        let trimmed = value.trim();
        match self.kind {
            Kind::Boolean => match trimmed.to_ascii_lowercase() {
                word if word == "true" || word == "false" => Ok(word),
                _ => Err(fault(value, "Expected value to be either true or false")),
            },
            Kind::Int | Kind::Long | Kind::Short => {
                let (least, most) = self.kind.range();
                let number = trimmed.parse().ok().filter(|n| (least..=most).contains(n));
                let number = number.ok_or_else(|| self.not_a_number(value))?;
                self.check_whole(number)?;
                Ok(number.to_string())
            }
            Kind::Double => {
                let number: f64 = trimmed.parse().map_err(|_| self.not_a_number(value))?;
                self.check_double(number)?;
                Ok(java_double(number))
            }
            Kind::String => self.parse_word(trimmed),
            Kind::List => self.parse_list(trimmed),
            Kind::Class => Ok(trimmed.to_owned()),
            Kind::Password => Ok(value.to_owned()),
        }
    }

    fn not_a_number(&self, value: &str) -> Fault {
        fault(value, format!("Not a number of type {}", self.kind.name()))
    }

    fn check_whole(&self, number: i64) -> Result<(), Fault> {
        match self.rule {
            Rule::Between(least, _) if number < least => {
                Err(fault(number, format!("Value must be at least {least}")))
            }
            Rule::Between(_, most) if number > most => {
                Err(fault(number, format!("Value must be no more than {most}")))
            }
            Rule::GzipLevel if number != -1 && !(1..=9).contains(&number) => {
                Err(fault(number, "Value must be between 1 and 9 or equal to -1"))
            }
            Rule::Any
            | Rule::Between(..)
            | Rule::GzipLevel
            | Rule::Words(_)
            | Rule::WordsAnyCase(_)
            | Rule::Replicas => Ok(()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the table's bounds of doubles are 0 and 1")]
    fn check_double(&self, number: f64) -> Result<(), Fault> {
        let Rule::Between(least, most) = self.rule else { return Ok(()) };
        if number < least as f64 {
            return Err(fault(java_double(number), format!("Value must be at least {least}")));
        }
        if most < i64::MAX && number > most as f64 {
            return Err(fault(java_double(number), format!("Value must be no more than {most}")));
        }
        Ok(())
    }

    fn parse_word(&self, word: &str) -> Result<String, Fault> {
        let (words, known) = match self.rule {
            Rule::Words(words) => (words, words.contains(&word)),
            Rule::WordsAnyCase(words) => {
                (words, words.iter().any(|known| known.eq_ignore_ascii_case(word)))
            }
            Rule::Any | Rule::Between(..) | Rule::GzipLevel | Rule::Replicas => {
                return Ok(word.to_owned());
            }
        };
        if !known {
            return Err(fault(word, format!("String must be one of: {}", words.join(", "))));
        }
        Ok(word.to_owned())
    }

    fn parse_list(&self, text: &str) -> Result<String, Fault> {
        let mut items = split_list(text);
        match self.rule {
            Rule::Words(_) | Rule::WordsAnyCase(_) => {
                // As Kafka 4.2 on: said twice is said once.
                let mut once = Vec::new();
                for item in items {
                    self.parse_word(item)?;
                    if !once.contains(&item) {
                        once.push(item);
                    }
                }
                items = once;
            }
            Rule::Replicas => {
                let pair = |item: &str| {
                    let numbers = item.split_once(':').map(|(p, b)| (p.parse(), b.parse()));
                    matches!(numbers, Some((Ok::<u32, _>(_), Ok::<u32, _>(_))))
                };
                if items != ["*"] && !items.iter().all(|item| pair(item)) {
                    let shown = format!("[{}]", items.join(", "));
                    return Err(fault(shown, REPLICAS_WANTED));
                }
            }
            Rule::Any | Rule::Between(..) | Rule::GzipLevel => {}
        }
        Ok(items.join(","))
    }
}

const REPLICAS_WANTED: &str = "{name} must be the literal '*' or a list of replicas in the \
     following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...";

struct Fault {
    value: String,
    reason: String,
}

fn fault(value: impl ToString, reason: impl Into<String>) -> Fault {
    Fault { value: value.to_string(), reason: reason.into() }
}

/// The items of a list; an empty text has none.
pub(super) fn split_list(text: &str) -> Vec<&str> {
    let text = text.trim();
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() }
}

/// A number as `Double.toString` prints it, which is what DescribeConfigs shows.
fn java_double(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) || !number.is_finite() {
        return format!("{number:?}");
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(shape: Shape, value: &str) -> String {
        shape.canonical("k", value).unwrap_or_else(|message| message)
    }

    #[test]
    fn values_are_printed_as_kafka_prints_them() {
        assert_eq!(says(INT, " +12 "), "12");
        assert_eq!(says(BOOLEAN, "FALSE"), "false");
        assert_eq!(says(DOUBLE, "1"), "1.0");
        assert_eq!(says(DOUBLE, "0.5"), "0.5");
        assert_eq!(says(DOUBLE, "1.7976931348623157E308"), "1.7976931348623157E308");
        assert_eq!(says(DOUBLE, "10000000"), "1.0E7");
        assert_eq!(says(list_of(&["a", "b"]), " b , a,b"), "b,a");
        assert_eq!(says(list_of(&["a", "b"]), ""), "");
        assert_eq!(says(REPLICAS, "*"), "*");
        assert_eq!(says(REPLICAS, "0:1,1:2"), "0:1,1:2");
    }

    #[test]
    fn refusals_are_in_kafkas_words() {
        let invalid = |value: &str, reason: &str| {
            format!("Invalid value {value} for configuration k: {reason}")
        };
        assert_eq!(says(LONG, "abc"), invalid("abc", "Not a number of type LONG"));
        assert_eq!(says(INT, "3000000000"), invalid("3000000000", "Not a number of type INT"));
        assert_eq!(says(SHORT, "40000"), invalid("40000", "Not a number of type SHORT"));
        assert_eq!(says(INT, ""), invalid("", "Not a number of type INT"));
        assert_eq!(says(int(1), "0"), invalid("0", "Value must be at least 1"));
        assert_eq!(says(int(1).most(22), "23"), invalid("23", "Value must be no more than 22"));
        assert_eq!(says(double(0).most(1), "2"), invalid("2.0", "Value must be no more than 1"));
        assert_eq!(
            says(GZIP_LEVEL, "0"),
            invalid("0", "Value must be between 1 and 9 or equal to -1")
        );
        assert_eq!(
            says(BOOLEAN, "maybe"),
            invalid("maybe", "Expected value to be either true or false")
        );
        assert_eq!(says(words(&["a", "b"]), "c"), invalid("c", "String must be one of: a, b"));
        assert_eq!(says(list_of(&["a", "b"]), "a,c"), invalid("c", "String must be one of: a, b"));
        assert!(says(REPLICAS, "foo").starts_with(
            "Invalid value [foo] for configuration k: k must be the literal '*' or a list"
        ));
    }
}
