//! Axes whose values are drawn: mixes of values of other axes.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde::Deserialize;
use toml::Table;

use super::{
    eval::{Axes, Names, NoRuns, Value},
    formula::Formula,
};
use crate::experiment::draw;

/// Mixes are the same whatever seed runs have.
const SEED: u64 = 42;
/// Most mixes of a list.
const MOST: u64 = 1000;

/// A list of mixes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drawn {
    /// What the draws follow from.
    draw: String,
    /// The mixes of the list: the first so many, or these.
    numbers: Numbers,
    /// Those of them that are run: the first so many, or these. Default: all.
    take: Option<Numbers>,
    /// Mixes that are run beside those.
    #[serde(default)]
    also: Vec<u64>,
    /// What the command line does not change.
    #[serde(default)]
    keeps: Vec<Kept>,
    /// What each has, part by part.
    from: Vec<Part>,
    /// Members come and go.
    comings: Option<Comings>,
}

/// Members that come one by one, each of which has one of some slots while it is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Comings {
    /// They come and go at drawn ones of so many times.
    times: u64,
    /// So many of the first members come in a drawn order. Then by turns the next of the others comes, and one of
    /// these goes.
    first: usize,
    /// So many.
    slots: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Numbers {
    First(u64),
    These(Vec<u64>),
}

/// What the command line changes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kept {
    Mixes,
}

/// So many values of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    axis: String,
    /// Of those where it holds.
    when: Option<Formula>,
    count: Counts,
}

/// A number, or one for each mix by turns.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Counts {
    Same(usize),
    Turns(Vec<usize>),
}

/// Mixes of the longest list of a grid that the command line shortens; none without such lists.
pub(super) fn longest(root: &Table) -> Option<u64> {
    let axes = root.get("axis")?.as_table()?.values();
    let lists = axes.filter_map(|values| Drawn::deserialize(values.clone()).ok());
    let lists = lists.filter(|list| !list.keeps.contains(&Kept::Mixes));
    let lengths = lists.map(|list| match list.numbers {
        Numbers::First(count) => count,
        Numbers::These(numbers) => numbers.len() as u64,
    });
    lengths.max()
}

impl Counts {
    fn of(&self, number: u64) -> usize {
        match self {
            Self::Same(count) => *count,
            Self::Turns(counts) => {
                let turn = number % counts.len().max(1) as u64;
                counts.get(turn as usize).copied().unwrap_or(0)
            }
        }
    }
}

impl Drawn {
    /// The mixes that are run, no more than so many if a number is given.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn values(&self, axes: &Axes, most: Option<u64>) -> Result<Vec<Value>, String> {
        let all = match &self.numbers {
            Numbers::First(count) if *count > MOST => {
                return Err(format!("numbers = {count}: allowed: up to {MOST}"));
            }
            Numbers::First(count) => (0..*count).collect(),
            Numbers::These(numbers) => numbers.clone(),
        };
        let most = most.filter(|_| !self.keeps.contains(&Kept::Mixes));
        let first = |count: u64| all.iter().copied().take(count as usize).collect();
        let is_of_list = |key: &str, numbers: &[u64]| {
            let other = numbers.iter().find(|number| !all.contains(number));
            other.map_or(Ok(()), |number| {
                Err(format!("{key}: {number}: allowed: mixes of the list"))
            })
        };
        is_of_list("also", &self.also)?;
        let mut taken: Vec<u64> = match (most, &self.take) {
            (Some(count), _) => first(count),
            (None, Some(Numbers::First(count))) => first(*count),
            (None, Some(Numbers::These(numbers))) => {
                is_of_list("take", numbers)?;
                numbers.clone()
            }
            (None, None) => all.clone(),
        };
        for number in &self.also {
            if !taken.contains(number) {
                taken.push(*number);
            }
        }
        if taken.is_empty() {
            return Err("numbers, take: allowed: one mix or more".to_owned());
        }
        let from = self.from.iter().map(|part| part.values(axes));
        let from: Vec<Vec<Value>> = from.collect::<Result<_, _>>()?;
        let mix = |(place, number): (usize, &u64)| self.mix((place, *number), &from);
        (1..).zip(&taken).map(mix).collect()
    }

    fn mix(&self, (place, number): (usize, u64), from: &[Vec<Value>]) -> Result<Value, String> {
        let mut members: Vec<Value> = Vec::new();
        for (part, (asked, from)) in self.from.iter().zip(from).enumerate() {
            let is_new = |value: &&Value| !members.contains(value);
            let mut left: Vec<Value> = from.iter().filter(is_new).cloned().collect();
            let count = asked.count.of(number);
            if count > left.len() {
                let (axis, there) = (&asked.axis, left.len());
                return Err(format!(
                    "from[{part}].count = {count}: allowed: {there} values of {axis} are left"
                ));
            }
            for n in 0..count {
                let words = format!("{} {part} {n}", self.draw);
                let at = draw(SEED, &words, number) % left.len() as u64;
                members.push(left.swap_remove(at as usize));
            }
        }
        if let Some(comings) = &self.comings {
            let members_of = comings.members((&self.draw, number), members);
            members = members_of.map_err(|says| format!("comings.{says}"))?;
        }
        let members = (1..).zip(&members).map(placed).collect::<Vec<_>>();
        let columns = [
            ("name", Value::Text(number.to_string())),
            ("number", Value::Number(number as f64)),
            ("place", Value::Number(place as f64)),
            ("list", Value::Text(self.draw.clone())),
            ("size", Value::Number(members.len() as f64)),
            ("member", Value::List(Arc::new(members))),
        ];
        let columns = columns.map(|(key, value)| (key.to_owned(), value));
        Ok(Value::Item(Arc::new(columns.into())))
    }
}

/// A member that comes.
struct Comer {
    member: Value,
    arrives: u64,
    /// The number of times if it stays.
    leaves: u64,
    slot: usize,
}

impl Comings {
    /// The members of a mix as they come, with columns for it.
    fn members(
        &self,
        (words, number): (&str, u64),
        members: Vec<Value>,
    ) -> Result<Vec<Value>, String> {
        let Self {
            times,
            first,
            slots,
        } = *self;
        let all = members.len();
        if first == 0 || first > all || all - first > first {
            return Err(format!(
                "first = {first}: allowed: 1 to {all}, at least half of the members"
            ));
        }
        let events = first + 2 * (all - first);
        if !(events as u64..=MOST).contains(&times) {
            return Err(format!("times = {times}: allowed: {events} to {MOST}"));
        }
        let draw_of = |what: &str, nth: usize| {
            draw(
                SEED,
                &format!("{words} {what}"),
                (number << 32) + nth as u64,
            )
        };
        let mut left: Vec<u64> = (1..times).collect();
        let mut at = vec![0];
        for nth in 0..events - 1 {
            let drawn = draw_of("sample", nth) % left.len() as u64;
            at.push(left.swap_remove(drawn as usize));
        }
        at.sort_unstable();
        let (early, late) = at.split_at(first);
        let mut left = members;
        let mut later = left.split_off(first).into_iter();
        let mut free: VecDeque<usize> = (0..slots).collect();
        let none_free = || format!("slots = {slots}: allowed: one for each member that is there");
        let mut comers: Vec<Comer> = Vec::new();
        for (nth, arrives) in early.iter().enumerate() {
            let drawn = draw_of("order", nth) % left.len() as u64;
            comers.push(Comer {
                member: left.swap_remove(drawn as usize),
                arrives: *arrives,
                leaves: times,
                slot: free.pop_front().ok_or_else(none_free)?,
            });
        }
        for (nth, at) in late.iter().enumerate() {
            if nth % 2 == 0 {
                let slot = free.pop_front().ok_or_else(none_free)?;
                comers.extend(later.next().map(|member| Comer {
                    member,
                    arrives: *at,
                    leaves: times,
                    slot,
                }));
                continue;
            }
            let there: Vec<usize> = (0..first).filter(|n| comers[*n].leaves == times).collect();
            let drawn = draw_of("leaves", nth) % there.len() as u64;
            let gone = &mut comers[there[drawn as usize]];
            gone.leaves = *at;
            free.push_back(gone.slot);
        }
        comers.into_iter().map(Comer::value).collect()
    }
}

impl Comer {
    fn value(self) -> Result<Value, String> {
        let mut columns = match &self.member {
            Value::Item(columns) => (**columns).clone(),
            other => {
                let name = other.text().map_err(|fault| fault.says().to_owned())?;
                BTreeMap::from([("name".to_owned(), Value::Text(name))])
            }
        };
        for (key, number) in [
            ("arrives", self.arrives as f64),
            ("leaves", self.leaves as f64),
            ("slot", self.slot as f64),
        ] {
            let before = columns.insert(key.to_owned(), Value::Number(number));
            if before.is_some() {
                return Err(format!("{key}: allowed: members without a column {key}"));
            }
        }
        Ok(Value::Item(Arc::new(columns)))
    }
}

/// A member of a mix, with the column `place`.
fn placed((place, member): (u32, &Value)) -> Value {
    let mut columns = match member {
        Value::Item(columns) => BTreeMap::clone(columns),
        other => match other.text() {
            Ok(name) => BTreeMap::from([("name".to_owned(), Value::Text(name))]),
            Err(_) => return other.clone(),
        },
    };
    columns.insert("place".to_owned(), Value::Number(place.into()));
    Value::Item(Arc::new(columns))
}

impl Part {
    fn values(&self, axes: &Axes) -> Result<Vec<Value>, String> {
        let known = BTreeMap::new();
        let names = Names {
            axes,
            known: &known,
            lets: Vec::new(),
            cells: &NoRuns,
            hosts: None,
        };
        let axis = std::slice::from_ref(&self.axis);
        let each = names.each(axis, self.when.as_ref(), &Vec::new());
        let each = each.map_err(|fault| format!("from: {}", fault.says()))?;
        Ok(each.into_iter().flatten().map(|(_, value)| value).collect())
    }
}
