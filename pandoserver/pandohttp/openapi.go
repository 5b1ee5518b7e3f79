package pandohttp

import (
	"net/http"
	"strings"
)

// object is an object of JSON.
type object = map[string]any

// openapi describes the server, by the routes that it has.
func (q *request) openapi() error {
	paths := object{}
	for _, r := range allRoutes {
		path, ok := paths[r.path].(object)
		if !ok {
			path = object{}
			paths[r.path] = path
		}
		path[strings.ToLower(r.method)] = q.s.operation(r)
	}
	all := object{
		"openapi": "3.1.0",
		"info":    object{"title": "Pando", "version": "1", "description": "Ordered indexes: lookups, ranges, places, sums and batches. Keys are bytes, in an address as %XX where they are no text."},
		"paths":   paths,
		"components": object{"schemas": object{"Error": object{
			"type": "object", "required": []string{"error", "status"},
			"properties": object{
				"error":  object{"type": "string", "description": "what is wrong"},
				"next":   object{"type": "string", "description": "what to do next"},
				"status": object{"type": "integer"},
			},
		}}},
	}
	if u := q.s.users(); u != nil && (q.s.cfg.users != nil || u.First() == nil) {
		all["components"].(object)["securitySchemes"] = object{"basic": object{"type": "http", "scheme": "basic"}}
		all["security"] = []object{{"basic": []string{}}}
	}
	writeJSON(q.w, http.StatusOK, all)
	return nil
}

// operation describes a route.
func (s *Server) operation(r *route) object {
	ok := object{"description": "text", "content": object{r.media: object{"schema": object{"type": "string"}}}}
	if r.rows != nil {
		content := object{}
		for _, f := range formats {
			content[f.media[0]] = object{"schema": object{"description": "rows of " + r.returns}}
		}
		ok = object{"description": "rows of " + r.returns, "content": content}
		if hasCursor(r) {
			ok["headers"] = object{cursorHeader: object{"description": "where the next entries begin; a trailer of long answers", "schema": object{"type": "string"}}}
		}
	}
	op := object{
		"summary":     r.what,
		"operationId": strings.ToLower(r.method) + strings.NewReplacer("/v1/", "_", "/", "_", ".", "_").Replace(r.path),
		"responses": object{"200": ok, "default": object{"description": "what is wrong", "content": object{
			"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}}}},
	}
	if r.open {
		op["security"] = []object{}
	}
	var params []object
	for _, p := range r.params {
		params = append(params, object{"name": p.name, "in": "query", "description": p.what, "required": p.needed, "schema": p.schema()})
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != "" {
		content := object{}
		for _, f := range formats {
			if f.name != "json" {
				content[f.media[0]] = object{"schema": object{"description": "rows of " + r.body}}
			}
		}
		op["requestBody"] = object{"description": "rows of " + r.body, "required": r.method != http.MethodDelete, "content": content}
	}
	return op
}

func hasCursor(r *route) bool {
	for _, p := range r.params {
		if p.name == "cursor" {
			return true
		}
	}
	return false
}

// schema describes a parameter.
func (p param) schema() object {
	one := object{"type": "string"}
	switch p.kind {
	case "string":
	case "integer", "number", "boolean":
		one["type"] = p.kind
	case "format":
		one["enum"] = formatNames()
	default:
		one["enum"] = strings.Split(p.kind, ",")
	}
	if p.many {
		return object{"type": "array", "items": one}
	}
	return one
}
