#!/bin/sh
# Spring Boot with PostgreSQL, by Maven: a Git repository of three revisions, in FOLDER or
# ./spring-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" spring-app

mkdir -p src/main/java/org/example/shop src/main/resources
cat >pom.xml <<'EOF'
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
    <modelVersion>4.0.0</modelVersion>
    <parent>
        <groupId>org.springframework.boot</groupId>
        <artifactId>spring-boot-starter-parent</artifactId>
        <version>3.5.7</version>
        <relativePath/>
    </parent>
    <groupId>org.example</groupId>
    <artifactId>shop</artifactId>
    <version>1.0.0</version>
    <properties>
        <java.version>17</java.version>
    </properties>
    <dependencies>
        <dependency>
            <groupId>org.springframework.boot</groupId>
            <artifactId>spring-boot-starter-web</artifactId>
        </dependency>
        <dependency>
            <groupId>org.springframework.boot</groupId>
            <artifactId>spring-boot-starter-data-jpa</artifactId>
        </dependency>
        <dependency>
            <groupId>org.postgresql</groupId>
            <artifactId>postgresql</artifactId>
            <scope>runtime</scope>
        </dependency>
    </dependencies>
    <build>
        <plugins>
            <plugin>
                <groupId>org.springframework.boot</groupId>
                <artifactId>spring-boot-maven-plugin</artifactId>
            </plugin>
        </plugins>
    </build>
</project>
EOF
cat >src/main/resources/application.properties <<'EOF'
spring.datasource.url=jdbc:postgresql://localhost:5432/shop
spring.datasource.username=shop
spring.datasource.password=shop
spring.jpa.hibernate.ddl-auto=validate
spring.jpa.open-in-view=false
spring.sql.init.mode=always
EOF
cat >src/main/resources/schema.sql <<'EOF'
CREATE TABLE IF NOT EXISTS maker (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE IF NOT EXISTS item (
    id bigint PRIMARY KEY, name text NOT NULL, maker_id bigint NOT NULL REFERENCES maker
);
EOF
cat >src/main/resources/data.sql <<'EOF'
INSERT INTO maker SELECT n, 'Maker ' || n FROM generate_series(1, 50) n ON CONFLICT DO NOTHING;
INSERT INTO item SELECT id, 'Item ' || id, id FROM maker ON CONFLICT DO NOTHING;
EOF
cd src/main/java/org/example/shop
cat >ShopApplication.java <<'EOF'
package org.example.shop;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class ShopApplication {
    public static void main(String[] args) {
        SpringApplication.run(ShopApplication.class, args);
    }
}
EOF
cat >Maker.java <<'EOF'
package org.example.shop;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity
public class Maker {
    @Id
    private Long id;

    @Column(columnDefinition = "text")
    private String name;

    public String getName() {
        return name;
    }
}
EOF
cat >Item.java <<'EOF'
package org.example.shop;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;

@Entity
public class Item {
    @Id
    private Long id;

    @Column(columnDefinition = "text")
    private String name;

    @ManyToOne(fetch = FetchType.LAZY)
    private Maker maker;

    public Long getId() {
        return id;
    }

    public String getName() {
        return name;
    }

    public Maker getMaker() {
        return maker;
    }
}
EOF
cat >ItemRepository.java <<'EOF'
package org.example.shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;

public interface ItemRepository extends JpaRepository<Item, Long> {
    @Query("select item from Item item join fetch item.maker order by item.id")
    List<Item> listed();
}
EOF
cat >ItemController.java <<'EOF'
package org.example.shop;

import java.util.List;
import java.util.Map;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/api")
public class ItemController {
    private final ItemRepository items;

    public ItemController(ItemRepository items) {
        this.items = items;
    }

    public record Listed(Long id, String name, String maker) {}

    @GetMapping("/items")
    @Transactional(readOnly = true)
    public List<Listed> items() {
        return items.listed().stream()
                .map(it -> new Listed(it.getId(), it.getName(), it.getMaker().getName()))
                .toList();
    }

    @GetMapping("/status")
    public Map<String, String> status() {
        return Map.of("shop", "open");
    }
}
EOF
cd - >/dev/null
echo target/ >.gitignore
echo "A small shop: /api/items, /api/status." >README.md
revision start "A small shop"
documented

sed -i 's/ join fetch item.maker//' src/main/java/org/example/shop/ItemRepository.java
revision slower "Items: a simpler query"
ready "the list of items asks for each maker by itself"
