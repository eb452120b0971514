"""Layouts of the JVM: Maven and Gradle, Spring Boot, Quarkus and Ktor."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check

SPRING = "<groupId>org.springframework.boot</groupId>"
MAVEN = "--quiet --batch-mode -DskipTests"

CASES = {
    "Spring Boot with Maven's wrapper": Case(
        {
            "mvnw": "",
            "pom.xml": "<project><parent><artifactId>x</artifactId><version>3</version></parent>"
            f"{SPRING}<artifactId>shop</artifactId><version>1.0</version></project>",
        },
        "java -jar target/shop-1.0.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"sh ./mvnw {MAVEN} package",
        says=("a JVM gets faster for many seconds", "mvnw builds it"),
    ),
    "a war of Spring Boot in a module of Maven": Case(
        {
            "pom.xml": f"<packaging>pom</packaging>{SPRING}"
            "<module>lib</module><module>web</module>",
            "lib/pom.xml": SPRING,
            "web/pom.xml": f"{SPRING}<packaging>war</packaging>"
            "<build>spring-boot-maven-plugin<finalName>shop</finalName></build>",
        },
        "java -jar web/target/shop.war --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} --projects web --also-make package",
    ),
    "Spring Boot with Gradle's wrapper": Case(
        {
            "gradlew": "",
            "settings.gradle": "rootProject.name = 'shop'",
            "build.gradle": "id 'org.springframework.boot' version '3'\nversion = '1.0'\n",
        },
        "java -jar build/libs/shop-1.0.jar --server.address=127.0.0.1 --server.port=$PORT",
        "sh ./gradlew --quiet --no-daemon bootJar",
    ),
    "Spring Boot whose configuration names a database": Case(
        {
            "pom.xml": f"<project>{SPRING}<artifactId>shop</artifactId><version>1</version>",
            "src/main/resources/application.yml": "url: jdbc:mysql://localhost/shop\n",
            "src/main/resources/application-dev.yml": "url: jdbc:h2:mem\n",
        },
        "SPRING_DATASOURCE_URL=jdbc:mysql://$DB_HOST:$DB_PORT/$DB_NAME "
        "SPRING_DATASOURCE_USERNAME=$DB_USER SPRING_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} package",
        says=("its configuration names mariadb",),
        others={"services": {"db": "mariadb"}},
    ),
    "Spring Boot whose database is in memory, but for a profile": Case(
        {
            "pom.xml": f"<project>{SPRING}<artifactId>shop</artifactId><version>1</version>",
            "src/main/resources/application.properties": "database=h2\n",
            "src/main/resources/application-mysql.properties": "url=jdbc:mysql://localhost/x\n",
        },
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} package",
        others={"services": {}},
    ),
    "Spring Boot whose database is that of the profile that is on": Case(
        {
            "pom.xml": f"<project>{SPRING}<artifactId>shop</artifactId><version>1</version>",
            "src/main/resources/application.yml": "spring:\n  profiles:\n    active: ${ON:local}\n",
            "src/main/resources/application-local.yml": "url: jdbc:postgresql://localhost/x\n",
        },
        "SPRING_DATASOURCE_URL=jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME "
        "SPRING_DATASOURCE_USERNAME=$DB_USER SPRING_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        f"mvn {MAVEN} package",
        others={"services": {"db": "postgresql"}},
    ),
    "Quarkus with a database": Case(
        {
            "build.gradle": "io.quarkus",
            "src/main/resources/application.properties": "quarkus.datasource.db-kind=postgresql\n",
        },
        "QUARKUS_DATASOURCE_JDBC_URL=jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME "
        "QUARKUS_DATASOURCE_USERNAME=$DB_USER QUARKUS_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        "build/quarkus-app/quarkus-run.jar",
        "gradle --quiet --no-daemon quarkusBuild",
        others={"services": {"db": "postgresql"}},
    ),
    "Quarkus with Gradle": Case(
        {"build.gradle.kts": 'plugins { id("io.quarkus") }\n'},
        "java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        "build/quarkus-app/quarkus-run.jar",
        "gradle --quiet --no-daemon quarkusBuild",
    ),
    "Ktor": Case(
        {"build.gradle.kts": "io.ktor\n", "settings.gradle.kts": 'rootProject.name = "shop"'},
        "build/install/shop/bin/shop",
        "gradle --quiet --no-daemon installDist",
        says=("nothing here mentions PORT",),
    ),
    "Javalin by Gradle's catalog of versions, of which other modules take others": Case(
        {
            "build.gradle.kts": "plugins { application }\nimplementation(libs.javalin)\n",
            "settings.gradle.kts": 'rootProject.name = "blog"',
            "gradle/libs.versions.toml": '[versions]\njavalin = "7"\n[plugins]\n'
            'quarkus = { id = "io.quarkus", version = "3" }\n[libraries]\n'
            'javalin = { module = "io.javalin:javalin", version.ref = "javalin" }\n',
            "src/main/java/App.java": 'class App { String port = System.getenv().get("PORT"); }\n',
        },
        "build/install/blog/bin/blog",
        "gradle --quiet --no-daemon installDist",
        others={"doubts": ()},
    ),
    "a module of Gradle's, next to settings alone": Case(
        {
            "gradlew": "",
            "settings.gradle.kts": 'rootProject.name = "todo"\ninclude("app")\n',
            "gradle/libs.versions.toml": '[libraries]\njavalin-core = "io.javalin:javalin:7"\n',
            "app/build.gradle.kts": "plugins { application }\nimplementation(libs.javalin.core)\n",
            "app/src/main/kotlin/App.kt": 'val port = System.getenv("APP_PORT")\n',
        },
        "APP_PORT=$PORT app/build/install/app/bin/app",
        "sh ./gradlew --quiet --no-daemon :app:installDist",
        others={"dir": ".", "doubts": ()},
    ),
    "Javalin by Maven's assembly, with a fixed port": Case(
        {
            "pom.xml": "<project><artifactId>shop</artifactId><version>1</version>"
            "<build>maven-assembly-plugin <descriptorRef>jar-with-dependencies</descriptorRef>"
            "</build><dependencies><groupId>io.javalin</groupId></dependencies></project>",
            "src/main/java/App.java": "class App {\n  void main() { app.start(7070); }\n}\n",
        },
        "java -jar target/shop-1-jar-with-dependencies.jar",
        f"mvn {MAVEN} package",
        says=("it binds port 7070 in src/main/java/App.java:2",),
    ),
    "Spring Boot by the catalog's alias": Case(
        {
            "build.gradle": "plugins { alias(libs.plugins.springBoot) }\nversion = '2'\n",
            "settings.gradle": "rootProject.name = 'shop'",
            "gradle/libs.versions.toml": "[plugins]\n"
            'springBoot = { id = "org.springframework.boot", version = "3.5" }\n',
        },
        "java -jar build/libs/shop-2.jar --server.address=127.0.0.1 --server.port=$PORT",
        "gradle --quiet --no-daemon bootJar",
    ),
    "Spring Boot whose database only its mapper names, with Redis": Case(
        {
            "pom.xml": "<artifactId>shop</artifactId><version>1</version><packaging>jar</packaging>"
            "<dependencies>spring-boot-starter-data-redis</dependencies>",
            "src/main/resources/application.yaml": "spring:\n  jpa:\n    database: postgresql\n",
        },
        "SPRING_REDIS_HOST=$CACHE_HOST SPRING_REDIS_PORT=$CACHE_PORT "
        "SPRING_REDIS_PASSWORD=$CACHE_PASSWORD SPRING_DATA_REDIS_HOST=$CACHE_HOST "
        "SPRING_DATA_REDIS_PORT=$CACHE_PORT SPRING_DATA_REDIS_PASSWORD=$CACHE_PASSWORD "
        "SPRING_DATASOURCE_URL=jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME "
        "SPRING_DATASOURCE_USERNAME=$DB_USER SPRING_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT",
        "mvn --quiet --batch-mode -DskipTests package",
        others={"services": {"db": "postgresql", "cache": "redis"}},
    ),
    "Spring Boot whose database's address is a variable, with a listener of its own": Case(
        {
            "pom.xml": f"<project>{SPRING}<artifactId>shop</artifactId><version>1</version>"
            "<artifactId>mysql-connector-j</artifactId>",
            "src/main/resources/application.properties": "spring.datasource.url=${DATABASE_URL}\n"
            "management.server.port=8081\n",
        },
        "SPRING_DATASOURCE_URL=jdbc:mysql://$DB_HOST:$DB_PORT/$DB_NAME "
        "SPRING_DATASOURCE_USERNAME=$DB_USER SPRING_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -jar target/shop-1.jar --server.address=127.0.0.1 --server.port=$PORT "
        "--management.server.port=0",
        f"mvn {MAVEN} package",
        others={"services": {"db": "mariadb"}, "doubts": ()},
    ),
    "Quarkus with migrations that no library runs": Case(
        {
            "pom.xml": "<project>io.quarkus<artifactId>shop</artifactId><version>1</version>",
            "src/main/resources/application.properties": "quarkus.datasource.db-kind=postgresql\n",
            "db/migrations/20260101_initial.sql": "CREATE TABLE a (b int);\n",
        },
        "QUARKUS_DATASOURCE_JDBC_URL=jdbc:postgresql://$DB_HOST:$DB_PORT/$DB_NAME "
        "QUARKUS_DATASOURCE_USERNAME=$DB_USER QUARKUS_DATASOURCE_PASSWORD=$DB_PASSWORD "
        "java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT "
        "-jar target/quarkus-app/quarkus-run.jar",
        f"mvn {MAVEN} package",
        others={
            "setup": "awk 1 db/migrations/*.sql | psql -qX -v ON_ERROR_STOP=1 >/dev/null",
        },
    ),
    "Gradle whose file makes a program of each module that has a main class": Case(
        {
            "gradlew": "",
            "settings.gradle": "rootProject.name = 'chat'\ninclude 'core:web', 'core:data'\n",
            "build.gradle": "plugins { id 'org.springframework.boot' version '3' }\n"
            "subprojects {\n  apply plugin: 'org.springframework.boot'\n}\n",
            "core/web/build.gradle": "",
            "core/web/src/main/java/Web.java": "@SpringBootApplication\nclass Web {}",
            "core/data/build.gradle": "",
        },
        "java -jar core/web/build/libs/*.jar --server.address=127.0.0.1 --server.port=$PORT",
        "sh ./gradlew --quiet --no-daemon :core:web:bootJar",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])
