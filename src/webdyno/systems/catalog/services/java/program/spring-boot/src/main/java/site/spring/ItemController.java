package site.spring;

import java.net.URI;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import site.Failure;
import site.InvalidException;
import site.Item;
import site.Items;
import site.NewItem;
import site.NotFoundException;
import site.Rules;

@RestController
@RequestMapping("/items")
class ItemController {
    private final ItemRepository items;

    ItemController(ItemRepository items) {
        this.items = items;
    }

    @GetMapping
    Items page(@RequestParam(required = false) String page) {
        return items.page(Rules.page(page));
    }

    /** Spring compares the tag with the client's, and answers 304. */
    @GetMapping("/{id}")
    ResponseEntity<Item> find(@PathVariable String id) {
        Item item = items.find(Rules.id(id));
        return ResponseEntity.ok().eTag(item.tag()).body(item);
    }

    @PostMapping
    ResponseEntity<Item> add(@RequestBody Map<String, Object> body) {
        Item item = items.add(NewItem.of(body.get("name"), body.get("price")));
        return ResponseEntity.created(URI.create("/items/" + item.id())).body(item);
    }

    @PutMapping("/{id}")
    Item update(@PathVariable String id, @RequestBody Map<String, Object> body) {
        return items.update(Rules.id(id), NewItem.of(body.get("name"), body.get("price")));
    }

    @DeleteMapping("/{id}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void delete(@PathVariable String id) {
        items.delete(Rules.id(id));
    }

    @ExceptionHandler
    @ResponseStatus(HttpStatus.NOT_FOUND)
    Failure notFound(NotFoundException error) {
        return new Failure(error.getMessage());
    }

    @ExceptionHandler
    @ResponseStatus(HttpStatus.BAD_REQUEST)
    Failure invalid(InvalidException error) {
        return new Failure(error.getMessage());
    }

    @ExceptionHandler
    @ResponseStatus(HttpStatus.BAD_REQUEST)
    Failure unreadable(HttpMessageNotReadableException error) {
        return new Failure("not a JSON object");
    }
}
