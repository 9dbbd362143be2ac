package work

import (
	"encoding/json"
	"fmt"
	"strconv"
)

//go:generate go tool msgp -file record.go -tests=false -io=false
//msgp:ignore Data

// Record is one record of the contract.
type Record struct {
	ID          int     `json:"id" msg:"id"`
	Name        string  `json:"name" msg:"name"`
	Description string  `json:"description" msg:"description"`
	Type        string  `json:"type" msg:"type"`
	Count       int     `json:"count" msg:"count"`
	CreatedAt   float64 `json:"created_at" msg:"created_at"`
}

// Data is what a contestant keeps in memory before it listens.
type Data struct {
	records []Record
	packed  [][]byte
	// The same with a name and a description of its own in every record.
	packedVaried [][]byte
	// JSONArray is the records as one JSON array.
	JSONArray []byte
}

// NewData builds the records, packs each on its own and encodes all as one array.
func NewData() (*Data, error) {
	d := &Data{}
	for i := range recordCount {
		// The conversion keeps the multiplication and the addition from being fused.
		createdAt := 1569882498.9117897 + float64(float64(i)*0.0000031)
		record := Record{i, name, description, "U", 33, createdAt}
		packed, err := record.MarshalMsg(nil)
		if err != nil {
			return nil, err
		}
		d.records = append(d.records, record)
		d.packed = append(d.packed, packed)
		record.Name = fmt.Sprintf("%s %d", name, i)
		record.Description = fmt.Sprintf("%s %d", description, i)
		if packed, err = record.MarshalMsg(nil); err != nil {
			return nil, err
		}
		d.packedVaried = append(d.packedVaried, packed)
	}
	var err error
	d.JSONArray, err = json.Marshal(d.records)
	return d, err
}

// ParseMsgpack decodes every packed record and returns how many there were, as text.
func (d *Data) ParseMsgpack(isVaried bool) (string, error) {
	allPacked := d.packed
	if isVaried {
		allPacked = d.packedVaried
	}
	decoded := make([]Record, len(allPacked))
	for i, packed := range allPacked {
		if _, err := decoded[i].UnmarshalMsg(packed); err != nil {
			return "", err
		}
	}
	return strconv.Itoa(len(decoded)), nil
}

// EncodeJSON encodes the records as one array and returns its number of characters (it is ASCII).
func (d *Data) EncodeJSON() (string, error) {
	encoded, err := json.Marshal(d.records)
	return strconv.Itoa(len(encoded)), err
}

const (
	recordCount = 1000
	name        = "My name"
	description = "Some words on here so it looks full"
)
