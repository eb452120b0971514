package site.spring;

import java.util.List;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import site.Rules;
import site.World;

@RestController
class WorldController {
    private final WorldRepository worlds;

    WorldController(WorldRepository worlds) {
        this.worlds = worlds;
    }

    @GetMapping("/db")
    World world() {
        return worlds.random();
    }

    @GetMapping("/queries")
    List<World> queries(@RequestParam(required = false) String queries) {
        return worlds.random(Rules.queries(queries));
    }

    @GetMapping("/updates")
    List<World> updates(@RequestParam(required = false) String queries) {
        return worlds.update(Rules.queries(queries));
    }
}
