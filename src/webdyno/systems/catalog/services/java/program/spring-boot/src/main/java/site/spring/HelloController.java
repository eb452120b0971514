package site.spring;

import java.io.IOException;
import java.io.InputStream;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import site.Message;
import site.Upload;

@RestController
class HelloController {
    @GetMapping(value = "/plaintext", produces = MediaType.TEXT_PLAIN_VALUE)
    String plaintext() {
        return "Hello, World!";
    }

    @GetMapping("/json")
    Message json() {
        return new Message("Hello, World!");
    }

    @PostMapping("/upload")
    Upload upload(InputStream body) throws IOException {
        return Upload.of(body);
    }
}
