//! The products of the shop, in memory: what lies below the framework, as `shared/python/shop_store.py` has it.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    Tools,
    Toys,
    Books,
    Music,
}

/// The fields of a product; the application makes its own type of them.
pub struct Fields {
    pub id: u32,
    pub name: String,
    pub category: Category,
    pub price: f64,
    pub cost: f64,
    pub stock: u32,
    pub tags: Vec<String>,
    pub seller: String,
}

/// What a key is called whose requests change products.
pub fn seller(key: &str) -> Option<String> {
    let number = key.strip_prefix("key-")?.strip_suffix("-of-a-seller")?;
    let number: u16 = number.parse().ok().filter(|&number| number < SELLERS)?;
    (key.len() == "key-0000-of-a-seller".len()).then(|| format!("seller {number}"))
}

pub struct Store<T> {
    shelves: HashMap<Category, BTreeMap<u32, T>>,
    categories: HashMap<u32, Category>,
    n_created: u32,
}

impl<T: Clone> Store<T> {
    pub fn new(make: impl Fn(Fields) -> T) -> Self {
        let mut store = Self {
            shelves: HashMap::new(),
            categories: HashMap::new(),
            n_created: 0,
        };
        for id in 1..=PRODUCTS {
            let category = if id > PRODUCTS / 2 {
                Category::Music
            } else {
                [Category::Tools, Category::Toys, Category::Books][id as usize % 3]
            };
            let fields = Fields {
                id,
                name: format!("Product number {id}"),
                category,
                price: f64::from(id % 500) + 0.5,
                cost: f64::from(id % 500) + 0.25,
                stock: id % 40,
                tags: vec![format!("tag {}", id % 7), format!("shelf {}", id % 90)],
                seller: "shop".to_owned(),
            };
            store.put(id, category, make(fields));
        }
        store
    }

    pub fn page(&self, category: Category, offset: usize, limit: usize) -> (Vec<T>, usize) {
        let Some(shelf) = self.shelves.get(&category) else {
            return (Vec::new(), 0);
        };
        let items = shelf.values().skip(offset).take(limit).cloned().collect();
        (items, shelf.len())
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.shelves.get(self.categories.get(&id)?)?.get(&id)
    }

    pub fn next_id(&mut self) -> u32 {
        let id = CREATED_FIRST + self.n_created % CREATED_MAX;
        self.n_created = self.n_created.wrapping_add(1);
        id
    }

    pub fn put(&mut self, id: u32, category: Category, product: T) {
        if let Some(before) = self.categories.insert(id, category)
            && before != category
        {
            self.shelves.entry(before).or_default().remove(&id);
        }
        self.shelves
            .entry(category)
            .or_default()
            .insert(id, product);
    }

    pub fn remove(&mut self, id: u32) {
        if let Some(category) = self.categories.remove(&id) {
            self.shelves.entry(category).or_default().remove(&id);
        }
    }
}

const PRODUCTS: u32 = 10_000;
const SELLERS: u16 = 64;
// Ids of products that requests create. A new one replaces the oldest when there are too many.
const CREATED_FIRST: u32 = 1_000_000;
const CREATED_MAX: u32 = 10_000;
