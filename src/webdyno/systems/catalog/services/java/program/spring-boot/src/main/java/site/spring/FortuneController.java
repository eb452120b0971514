package site.spring;

import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Controller;
import org.springframework.ui.Model;
import org.springframework.web.bind.annotation.GetMapping;
import site.Fortune;

@Controller
class FortuneController {
    private final JdbcTemplate jdbc;

    FortuneController(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    @GetMapping("/fortunes")
    String fortunes(Model model) {
        List<Fortune> fortunes = jdbc.query(
                "SELECT id, message FROM fortune",
                (row, number) -> new Fortune(row.getInt("id"), row.getString("message")));
        fortunes.add(Fortune.ADDITIONAL);
        fortunes.sort(null);
        model.addAttribute("fortunes", fortunes);
        return "fortunes";
    }
}
