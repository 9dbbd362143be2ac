//! What a server says of a statement.

use alloc::string::String;
use alloc::vec::Vec;

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ParameterDescriptionBody, RowDescriptionBody};

use crate::fault::Fault;
use crate::types::Types;
use crate::value::Kind;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The identity of its type in `pg_type`.
    pub type_oid: u32,
    /// How its values are read.
    pub kind: Kind,
}

/// Parameters and columns of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The types of the parameters.
    pub parameters: Vec<u32>,
    /// The columns; none if it returns no rows.
    pub columns: Vec<Column>,
    /// 1 for columns that are asked for in binary format.
    pub(crate) formats: Vec<u8>,
}

impl Description {
    pub(crate) fn set_parameters(&mut self, body: &ParameterDescriptionBody) -> Result<(), Fault> {
        let parameters = body.parameters().collect();
        self.parameters = parameters.map_err(|_| Fault::Protocol("malformed parameters"))?;
        Ok(())
    }

    pub(crate) fn set_columns(&mut self, body: &RowDescriptionBody) -> Result<(), Fault> {
        let column = |field: postgres_protocol::message::backend::Field<'_>| {
            Ok(Column {
                name: field.name().into(),
                type_oid: field.type_oid(),
                kind: Kind::of(field.type_oid()),
            })
        };
        let columns = body.fields().map(column).collect();
        self.columns = columns.map_err(|_| Fault::Protocol("malformed columns"))?;
        self.formats = formats_of(&self.columns);
        Ok(())
    }

    /// Types of parameters and columns of which it has to be found out what they are.
    pub fn unknown_types(&self, types: &Types) -> Vec<u32> {
        let columns = self.columns.iter().map(|column| column.type_oid);
        let all = self.parameters.iter().copied().chain(columns);
        all.filter(|&type_oid| types.is_unknown(type_oid)).collect()
    }

    /// Has values of types of the database's own read as what they are.
    pub fn resolve(&mut self, types: &Types) {
        for column in &mut self.columns {
            column.kind = types.kind_of(column.type_oid);
        }
        self.formats = formats_of(&self.columns);
    }

    /// Whether the columns have the same names and types.
    pub fn has_columns_of(&self, other: &Self) -> bool {
        let same = |(one, other): (&Column, &Column)| {
            one.name == other.name && one.type_oid == other.type_oid
        };
        self.columns.len() == other.columns.len()
            && self.columns.iter().zip(&other.columns).all(same)
    }

    /// The same statement with other columns, whose types are known; `None` if their values come in another format than was
    /// asked for.
    #[must_use]
    pub fn with_columns(&self, columns: &Self, types: &Types) -> Option<Self> {
        let mut found = Self {
            parameters: self.parameters.clone(),
            ..columns.clone()
        };
        if !found.unknown_types(types).is_empty() {
            return None;
        }
        found.resolve(types);
        (found.formats == self.formats).then_some(found)
    }

    /// A copy with all values in the text format of their types, `bytea` in binary format.
    #[must_use]
    pub fn as_text(&self) -> Self {
        let columns = self.columns.iter();
        let formats = columns.map(|column| u8::from(column.kind == Kind::Bytea));
        Self {
            formats: formats.collect(),
            ..self.clone()
        }
    }

    /// Changes all values to text, which is how the simple protocol sends them.
    pub(crate) fn without_binary(mut self) -> Self {
        for column in &mut self.columns {
            column.kind = Kind::Text;
        }
        self
    }
}

/// 1 for columns that are read in binary format.
fn formats_of(columns: &[Column]) -> Vec<u8> {
    columns
        .iter()
        .map(|column| u8::from(column.kind.is_binary()))
        .collect()
}
